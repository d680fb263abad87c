#include "trireme/engine/capture/call_listener.h"

#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/library.h>

#include <memory>
#include <mutex>
#include <utility>

#include "trireme/error.h"

namespace trireme::capture {
namespace {

/// A place below autograd that torch leaves to others.
constexpr auto kKey = c10::DispatchKey::Fake;

thread_local CallListener* listener = nullptr;

void tell(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  const c10::DispatchKeySet rest =
      keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kKey);
  const c10::impl::ExcludeDispatchKeyGuard within(kKey);
  const auto last = [&](std::size_t count) {
    return c10::ArrayRef<c10::IValue>(*stack).slice(stack->size() - count);
  };
  listener->before(op, last(op.schema().arguments().size()));
  op.redispatchBoxed(rest, stack);
  listener->after(op, last(op.schema().returns().size()));
}

/// Once per process, when it is first wanted.
void register_listening() {
  static std::unique_ptr<torch::Library> library;
  static std::once_flag once;
  std::call_once(once, [] {
    try {
      auto made = std::make_unique<torch::Library>(torch::Library::IMPL, "_", kKey, __FILE__,
                                                   static_cast<std::uint32_t>(__LINE__));
      made->fallback(torch::CppFunction::makeFromBoxedFunction<&tell>());
      library = std::move(made);
    } catch (const c10::Error& failure) {
      throw Error(ErrorKind::kUnavailable,
                  std::string("torch's dispatcher has no place to listen at: ") +
                      failure.what_without_backtrace());
    }
  });
}

}  // namespace

Listening::Listening(CallListener& now) {
  register_listening();
  before_ = std::exchange(listener, &now);
  c10::impl::tls_set_dispatch_key_included(kKey, true);
}

Listening::~Listening() {
  listener = before_;
  c10::impl::tls_set_dispatch_key_included(kKey, before_ != nullptr);
}

ListeningPause::ListeningPause() : was_excluded_(c10::impl::tls_is_dispatch_key_excluded(kKey)) {
  c10::impl::tls_set_dispatch_key_excluded(kKey, true);
}

ListeningPause::~ListeningPause() { c10::impl::tls_set_dispatch_key_excluded(kKey, was_excluded_); }

}  // namespace trireme::capture
