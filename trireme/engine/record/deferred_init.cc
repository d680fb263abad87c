#include "trireme/engine/record/deferred_init.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <sys/mman.h>
#include <torch/library.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <set>
#include <string>
#include <utility>

#include "trireme/engine/record/state_guard.h"
#include "trireme/error.h"

namespace trireme::record {
namespace {

constexpr std::size_t kPage = 4096;

constexpr auto kKey = c10::DispatchKey::TESTING_ONLY_GenericMode;

thread_local DeferredInit* active = nullptr;

/// Write all of a tensor, whatever it held.
const std::set<std::string> kFills = {"aten::bernoulli_",  "aten::cauchy_",    "aten::exponential_",
                                      "aten::fill_",       "aten::geometric_", "aten::normal_",
                                      "aten::log_normal_", "aten::random_",    "aten::uniform_",
                                      "aten::zero_"};

/// Change a tensor by its own values and numbers.
const std::set<std::string> kChanges = {
    "aten::abs_", "aten::add_",    "aten::clamp_", "aten::clamp_max_", "aten::clamp_min_",
    "aten::div_", "aten::erfinv_", "aten::exp_",   "aten::log_",       "aten::mul_",
    "aten::neg_", "aten::pow_",    "aten::sqrt_",  "aten::sub_",       "aten::tanh_"};

/// Look at no values: views, and what tensors say of themselves.
const std::set<std::string> kLooks = {"aten::alias",
                                      "aten::as_strided",
                                      "aten::chunk",
                                      "aten::detach",
                                      "aten::diagonal",
                                      "aten::empty_like",
                                      "aten::expand",
                                      "aten::full_like",
                                      "aten::is_same_size",
                                      "aten::movedim",
                                      "aten::narrow",
                                      "aten::new_empty",
                                      "aten::new_full",
                                      "aten::new_ones",
                                      "aten::new_zeros",
                                      "aten::numpy_T",
                                      "aten::ones_like",
                                      "aten::permute",
                                      "aten::rand_like",
                                      "aten::randn_like",
                                      "aten::requires_grad_",
                                      "aten::select",
                                      "aten::size",
                                      "aten::slice",
                                      "aten::split",
                                      "aten::squeeze",
                                      "aten::t",
                                      "aten::transpose",
                                      "aten::unbind",
                                      "aten::unflatten",
                                      "aten::unsqueeze",
                                      "aten::view",
                                      "aten::view_as",
                                      "aten::zeros_like",
                                      "aten::is_floating_point"};

bool is_random(const c10::OperatorHandle& op) {
  return op.hasTag(at::Tag::nondeterministic_seeded);
}

c10::ArrayRef<c10::IValue> arguments_of(const c10::OperatorHandle& op,
                                        const torch::jit::Stack& stack) {
  const std::size_t number = op.schema().arguments().size();
  return c10::ArrayRef<c10::IValue>(stack).slice(stack.size() - number);
}

/// Calls `see` with each tensor among the values.
template <typename See>
void for_tensors(c10::ArrayRef<c10::IValue> values, const See& see) {
  for (const c10::IValue& value : values) {
    if (value.isTensor()) {
      if (value.toTensor().defined()) see(value.toTensor());
    } else if (value.isList()) {
      for (const c10::IValue& item : value.toListRef()) {
        if (item.isTensor() && item.toTensor().defined()) see(item.toTensor());
      }
    }
  }
}

/// Beside the tensor written there are numbers alone, and no generator of the caller's.
bool takes_numbers_alone(c10::ArrayRef<c10::IValue> rest) {
  return std::all_of(rest.begin(), rest.end(), [](const c10::IValue& value) {
    if (value.isTensor()) return value.toTensor().unsafeGetTensorImpl()->is_wrapped_number();
    return !value.isList() && !value.isGenerator();
  });
}

/// All of the memory behind it is the tensor's, and it is torch's own.
bool is_whole_and_large(const at::Tensor& tensor) {
  return tensor.layout() == at::kStrided && tensor.device().is_cpu() && tensor.has_storage() &&
         tensor.is_non_overlapping_and_dense() && !tensor.is_conj() && !tensor.is_neg() &&
         static_cast<std::int64_t>(tensor.nbytes()) >= DeferredInit::kSmallest &&
         tensor.nbytes() == tensor.storage().nbytes() && tensor.storage().resizable() &&
         tensor.storage().allocator() != nullptr;
}

/// Autograd would refuse it, or remember it.
bool is_seen_by_autograd(const at::Tensor& tensor) {
  return at::GradMode::is_enabled() && tensor.requires_grad();
}

struct Mapped {
  void* memory;
  std::size_t bytes;
};

void unmap(void* context) {
  const auto* mapped = static_cast<Mapped*>(context);
  ::munmap(mapped->memory, mapped->bytes);
  delete mapped;
}

/// Zeros that take no memory until they are written.
c10::DataPtr untouched_memory(std::size_t bytes) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return {memory, new Mapped{memory, bytes}, &unmap, at::Device(at::kCPU)};
}

bool is_zero(const c10::Storage& storage) {
  const auto* bytes = static_cast<const char*>(storage.data());
  return bytes[0] == 0 && std::memcmp(bytes, bytes + 1, storage.nbytes() - 1) == 0;
}

/// Somebody has read or written it: the kernel has made a page.
bool has_pages(const c10::Storage& storage) {
  std::vector<unsigned char> pages((storage.nbytes() + kPage - 1) / kPage);
  if (::mincore(storage.mutable_data(), storage.nbytes(), pages.data()) != 0) return false;
  return std::ranges::any_of(pages, [](unsigned char page) { return (page & 1U) != 0; });
}

void require_unseen(bool is_unseen) {
  if (is_unseen) return;
  throw Error(ErrorKind::kInvalidArgument,
              "with deferred initialisation the model read or wrote a tensor's memory by other "
              "means than torch's "
              "operators (a pointer, a NumPy array) before it had its values; use operators, or "
              "leave it out");
}

/// An operator with its arguments, and where its random numbers begin.
std::function<void()> noted(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments) {
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const at::Tensor state = is_random(op) ? generator.get_state() : at::Tensor();
  return [op, generator, state, stack = arguments.vec()]() mutable {
    if (state.defined()) generator.set_state(state);
    op.callBoxed(stack);
  };
}

}  // namespace

/// What the mode does with each operator.
void run_or_put_off(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                    torch::jit::Stack* stack) {
  const c10::DispatchKeySet rest =
      keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kKey);
  bool has_tensors = false;
  for_tensors(arguments_of(op, *stack), [&](const at::Tensor&) { has_tensors = true; });
  // One that makes a tensor of nothing is made of others, which are put off.
  if (!has_tensors) return op.redispatchBoxed(rest, stack);
  const c10::impl::ExcludeDispatchKeyGuard by_itself(kKey);
  if (active->puts_off(op, *stack)) {
    at::Tensor self = arguments_of(op, *stack)[0].toTensor();
    torch::jit::drop(*stack, op.schema().arguments().size());
    stack->emplace_back(std::move(self));
    return;
  }
  active->fill_read(op, arguments_of(op, *stack));
  op.redispatchBoxed(rest, stack);
}

void DeferredInit::making(const std::function<void()>& make) {
  struct Active {
    explicit Active(DeferredInit* now) : before(std::exchange(active, now)) {}
    ~Active() { active = before; }
    DeferredInit* before;
  } const in_force(this);
  {
    const c10::impl::IncludeDispatchKeyGuard mode(kKey);
    make();
  }
  for (const auto& [storage, waiting] : waiting_) require_unseen(!has_pages(waiting.storage));
}

bool DeferredInit::puts_off(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  const std::string& name = op.schema().name();
  const bool fills = kFills.contains(name);
  if (!fills && !kChanges.contains(name)) return false;
  const auto arguments = arguments_of(op, stack);
  if (!arguments[0].isTensor()) return false;
  const at::Tensor& self = arguments[0].toTensor();
  if (is_seen_by_autograd(self) || !takes_numbers_alone(arguments.slice(1))) return false;
  Waiting* waiting = find(self);
  if (waiting == nullptr) {
    if (!fills || !is_whole_and_large(self)) return false;
    const c10::Storage& storage = self.storage();
    storage.set_data_ptr_noswap(untouched_memory(storage.nbytes()));
    waiting = &waiting_.emplace(storage.unsafeGetStorageImpl(), Waiting{storage, {}}).first->second;
  }
  // What was to be written before is overwritten.
  if (fills && is_whole_and_large(self)) waiting->writes.clear();
  waiting->writes.push_back(noted(op, arguments));
  return true;
}

void DeferredInit::fill_read(const c10::OperatorHandle& op, c10::ArrayRef<c10::IValue> arguments) {
  if (waiting_.empty() || kLooks.contains(op.schema().name())) return;
  for_tensors(arguments, [&](const at::Tensor& tensor) { fill(tensor); });
}

DeferredInit::Waiting* DeferredInit::find(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.has_storage()) return nullptr;
  const auto found = waiting_.find(tensor.storage().unsafeGetStorageImpl());
  return found == waiting_.end() ? nullptr : &found->second;
}

bool DeferredInit::put_off(const at::Tensor& tensor, std::function<void()> write) {
  Waiting* waiting = active == nullptr ? nullptr : active->find(tensor);
  if (waiting == nullptr) return false;
  waiting->writes.assign(1, std::move(write));
  return true;
}

void DeferredInit::fill(Waiting waiting) {
  // Once it is made, recordings read it.
  require_unseen(active == this ? !has_pages(waiting.storage) : is_zero(waiting.storage));
  const at::NoGradGuard no_grad;
  const c10::impl::ExcludeDispatchKeyGuard at_once(kKey);
  const GeneratorTurn turn;
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  const at::Tensor before = generator.get_state();
  for (const std::function<void()>& write : waiting.writes) write();
  generator.set_state(before);
}

void DeferredInit::fill(const at::Tensor& tensor) {
  if (find(tensor) == nullptr) return;
  fill(waiting_.extract(tensor.storage().unsafeGetStorageImpl()).mapped());
}

void DeferredInit::fill_all_but(const std::vector<at::Tensor>& tensors) {
  std::set<const c10::StorageImpl*> kept;
  for (const at::Tensor& tensor : tensors) {
    if (tensor.defined() && tensor.has_storage()) {
      kept.insert(tensor.storage().unsafeGetStorageImpl());
    }
  }
  std::vector<const c10::StorageImpl*> others;
  for (const auto& [storage, waiting] : waiting_) {
    if (!kept.contains(storage)) others.push_back(storage);
  }
  for (const c10::StorageImpl* storage : others) fill(waiting_.extract(storage).mapped());
}

void forget_values(const at::Tensor& tensor) {
  constexpr std::size_t kLeast = std::size_t{1} << 20;
  if (!tensor.has_storage() || !tensor.device().is_cpu()) return;
  const c10::Storage& storage = tensor.storage();
  if (storage.nbytes() < kLeast || storage.allocator() == nullptr) return;
  const auto begin = reinterpret_cast<std::uintptr_t>(storage.data());
  const std::uintptr_t first = (begin + kPage - 1) / kPage * kPage;
  const std::uintptr_t last = (begin + storage.nbytes()) / kPage * kPage;
  ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

std::int64_t DeferredInit::bytes() const {
  std::int64_t bytes = 0;
  for (const auto& [storage, waiting] : waiting_) {
    bytes += static_cast<std::int64_t>(waiting.storage.nbytes());
  }
  return bytes;
}

}  // namespace trireme::record

TORCH_LIBRARY_IMPL(_, TESTING_ONLY_GenericMode, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&trireme::record::run_or_put_off>());
}
