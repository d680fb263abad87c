#include "trireme/engine/program/capture_turn.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "trireme/base/sha256.h"
#include "trireme/engine/capture/tape_recorder.h"
#include "trireme/engine/program/stage_autograd.h"
#include "trireme/engine/program/torch_failure.h"
#include "trireme/engine/record/graph_difference.h"
#include "trireme/engine/record/state_guard.h"

namespace trireme::program {
namespace {

using State = CapturedStage::State;

/// A turn that has the state of its capture, and gives it back where it does not come to an end.
class Turn : public CaptureTurn {
 public:
  Turn(const CaptureContext& context, std::shared_ptr<CapturedStage> captured, State before)
      : context_(context), captured_(std::move(captured)), before_(before) {}
  ~Turn() override {
    if (!is_over_) captured_->state = before_;
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 protected:
  /// The stage cannot be captured.
  void refuse(const std::string& reason) {
    if (std::exchange(is_over_, true)) return;
    captured_->refuse(reason);
  }
  void end(State state) {
    if (!std::exchange(is_over_, true)) captured_->state = state;
  }
  bool is_over() const { return is_over_; }
  const CaptureContext& context() const { return context_; }
  CapturedStage& captured() { return *captured_; }

 private:
  const CaptureContext& context_;
  std::shared_ptr<CapturedStage> captured_;
  State before_;
  bool is_over_ = false;
};

at::Tensor gradient_of(const ValueMap& gradients, graph::ValueId value) {
  const auto found = gradients.find(value);
  return found == gradients.end() ? at::Tensor() : found->second;
}

class ListeningTurn : public Turn, private SiteListener {
 public:
  ListeningTurn(const CaptureContext& context, std::shared_ptr<CapturedStage> captured,
                const CaptureInput& input)
      : Turn(context, std::move(captured), State::kNew) {
    for (const at::Tensor& tensor : context.recording.tensors) recorder_.add_fixed(tensor);
    for (const at::Tensor& tensor : input.tensors) recorder_.add_input(tensor);
  }

  void forward(const Slots& slots, const std::function<void()>& work,
               const std::function<std::vector<at::Tensor>()>& ends) override {
    recorder_.set_cause([&]() -> capture::Cause {
      const graph::Node* node = context().nodes.node_at(slots.position);
      return {slots.position, node != nullptr && node->flags.random};
    });
    {
      const capture::Listening listening(recorder_);
      work();
    }
    for (const at::Tensor& end : ends()) recorder_.add_output(end);
  }

  ValueMap backward(const Start& start, const Slots& slots,
                    const std::function<ValueMap()>& work) override {
    recorder_.begin_phase();
    for (const at::Tensor& gradient : start.gradients) recorder_.add_input(gradient);
    captured().roots = start.roots;
    captured().seeds = start.seeds;
    captured().functions.clear();
    captured().has_two_parts = false;
    recorder_.set_cause([&] { return cause_of_backward(slots); });
    ValueMap gradients;
    listen([&] { gradients = work(); });
    for (const graph::ValueId leaf : context().leaves) {
      recorder_.add_output(gradient_of(gradients, leaf));
    }
    return gradients;
  }

  void weights(const Slots& slots, const std::function<void()>& work) override {
    captured().has_two_parts = true;
    recorder_.begin_phase();
    recorder_.set_cause([&] { return cause_of_backward(slots); });
    listen(work);
  }

  void finish() override {
    if (!recorder_.refusal().empty()) return refuse(recorder_.refusal());
    if (captured().wants_two_parts && !captured().has_two_parts) return end(State::kNew);
    captured().replayer = std::make_unique<capture::Replayer>(recorder_.take());
    end(State::kHeard);
  }

 private:
  void listen(const std::function<void()>& backward) {
    const capture::Listening listening(recorder_);
    const SiteListening sites(*this);
    backward();
  }

  void leaving(int site, const at::Tensor& gradient) override {
    recorder_.add_site(site, gradient);
  }

  /// Gradients are added between functions: by the one before.
  capture::Cause cause_of_backward(const Slots& slots) {
    std::vector<CapturedStage::Function>& functions = captured().functions;
    const NodePtr function = torch::autograd::get_current_node();
    if (function && (functions.empty() || function->sequence_nr() != sequence_)) {
      sequence_ = function->sequence_nr();
      functions.push_back({function->name(), context().nodes.node_of(slots, sequence_)});
    }
    return {static_cast<int>(functions.size()) - 1, false};
  }

  capture::TapeRecorder recorder_;
  std::uint64_t sequence_ = 0;
};

/// What tensors are told apart by: how they lie and their bits.
std::string digest_of(const at::Tensor& tensor) {
  if (!tensor.defined()) return "none";
  const at::Tensor dense = tensor.detach().contiguous();
  std::string text = c10::toString(tensor.scalar_type());
  for (const std::int64_t size : tensor.sizes()) text += ' ' + std::to_string(size);
  for (const std::int64_t stride : tensor.strides()) text += '/' + std::to_string(stride);
  return text +
         sha256(std::span(static_cast<const std::byte*>(dense.const_data_ptr()), dense.nbytes()));
}

std::vector<std::string> digests_of(const std::vector<at::Tensor>& tensors) {
  std::vector<std::string> digests;
  for (const at::Tensor& tensor : tensors) digests.push_back(digest_of(tensor));
  return digests;
}

/// The replay comes once the usual run has let go of what it kept: memory holds one of both.
class ComparingTurn : public Turn, private SiteListener {
 public:
  ComparingTurn(const CaptureContext& context, std::shared_ptr<CapturedStage> captured,
                CaptureInput input)
      : Turn(context, std::move(captured), State::kHeard), input_(std::move(input)) {}

  void forward(const Slots& /*slots*/, const std::function<void()>& work,
               const std::function<std::vector<at::Tensor>()>& ends) override {
    work();
    ends_ = digests_of(ends());
  }

  ValueMap backward(const Start& start, const Slots& /*slots*/,
                    const std::function<ValueMap()>& work) override {
    ValueMap gradients;
    {
      const SiteListening sites(*this);
      gradients = work();
    }
    if (start.seeds != captured().seeds) refuse("its backward begins elsewhere");
    seeds_ = start.gradients;
    std::vector<at::Tensor> made;
    for (const graph::ValueId leaf : context().leaves) made.push_back(gradient_of(gradients, leaf));
    gradients_ = digests_of(made);
    return gradients;
  }

  void weights(const Slots& /*slots*/, const std::function<void()>& work) override {
    has_two_parts_ = true;
    const SiteListening sites(*this);
    work();
  }

  void finish() override {
    if (is_over()) return;
    if (has_two_parts_ && !captured().has_two_parts) {
      captured().wants_two_parts = true;
      return end(State::kNew);
    }
    try {
      compare();
    } catch (
        const capture::FailedCall& failed) {  // The usual run says what is wrong with a microbatch.
      refuse("a replay failed: " + text_of(failed.cause));
    } catch (const std::exception& failure) {
      refuse(std::string("a replay failed: ") + failure.what());
    }
    end(State::kTrusted);
  }

 private:
  using Site = std::pair<int, std::string>;

  void leaving(int site, const at::Tensor& gradient) override {
    sites_.emplace_back(site, digest_of(gradient));
  }

  void compare() {
    capture::Replayer& replayer = *captured().replayer;
    if (!replayer.takes(capture::Phase::kForward, input_.tensors) ||
        !replayer.takes(capture::Phase::kBackward, seeds_)) {
      return refuse("what it is given lies otherwise in memory");
    }
    const auto seeded = [&](int position, const std::function<void()>& run) {
      run_seeded(context().nodes, position, input_.stream, run);
    };
    constexpr auto kMarked = capture::Fresh::kMarked;
    capture::ReplayedRun run;
    if (digests_of(replayer.forward(std::move(input_.tensors), run, seeded, kMarked)) != ends_) {
      return refuse("a replayed forward gave other bits");
    }
    std::vector<Site> sites;
    const auto take = [&](int site, const at::Tensor& gradient) {
      sites.emplace_back(site, digest_of(gradient));
    };
    if (digests_of(replayer.backward(std::move(seeds_), run, take, kMarked)) != gradients_) {
      return refuse("a replayed backward gave other bits");
    }
    replayer.weights(run, take, kMarked);
    // A whole backward and one in two parts come to sites in different orders.
    std::ranges::sort(sites);
    std::ranges::sort(sites_);
    if (sites != sites_) refuse("a replay gave other bits for a parameter");
  }

  static std::string text_of(const std::exception_ptr& cause) {
    try {
      std::rethrow_exception(cause);
    } catch (const std::exception& failure) {
      return error_of(failure).message();
    }
  }

  CaptureInput input_;
  std::vector<at::Tensor> seeds_;
  bool has_two_parts_ = false;
  std::vector<std::string> ends_, gradients_;  ///< Digests, as all that is compared.
  std::vector<Site> sites_;
};

}  // namespace

std::unique_ptr<CaptureTurn> begin_turn(const CaptureContext& context,
                                        std::shared_ptr<CapturedStage> captured,
                                        const CaptureInput& input) {
  State state = State::kNew;
  if (captured->state.compare_exchange_strong(state, State::kListening)) {
    return std::make_unique<ListeningTurn>(context, std::move(captured), input);
  }
  if (state != State::kHeard ||
      !captured->state.compare_exchange_strong(state, State::kComparing)) {
    return nullptr;
  }
  return std::make_unique<ComparingTurn>(context, std::move(captured), input);
}

void run_seeded(const NodeProgram& nodes, int position, const NodeStream& stream,
                const std::function<void()>& run) {
  const graph::Node& node = *nodes.node_at(position);
  record::with_seeded_generator(stream.of_node(node.copy_of >= 0 ? node.copy_of : node.id), run);
}

}  // namespace trireme::program
