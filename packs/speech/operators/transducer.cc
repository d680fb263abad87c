#include "packs/speech/operators/transducer.h"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/library.h>

#include <algorithm>
#include <span>
#include <tuple>
#include <vector>

#include "packs/speech/kernels/joint.h"
#include "packs/speech/kernels/loss.h"
#include "trireme/engine/operators/kernel_operator.h"

namespace trireme::speech {
namespace {

using operators::internal::BelowAutograd;
using operators::internal::Expect;
using operators::internal::find_operator;
using operators::internal::kernel_below_autograd;
using operators::internal::under_autocast;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Lengths as the kernels take them.
struct Grid {
  std::vector<std::int32_t> num_frames, num_labels;
  std::vector<std::int64_t> offsets;
  Lattices lattices;

  Grid(const at::Tensor& frames, const at::Tensor& labels, bool is_packed)
      : num_frames(operators::internal::to_int32("num_frames", frames)),
        num_labels(operators::internal::to_int32("num_labels", labels)) {
    if (is_packed) offsets = packed_offsets(num_frames, num_labels);
    lattices = {.num_frames = num_frames, .num_labels = num_labels, .offsets = offsets};
  }
};

void check_lengths(const Expect& expect, const at::Tensor& num_frames,
                   const at::Tensor& num_labels) {
  expect.dtype("num_frames", num_frames, {at::kInt, at::kLong});
  expect.dtype("num_labels", num_labels, {at::kInt, at::kLong});
  expect.dims("num_frames", num_frames, 1);
  expect.shape("num_labels", num_labels, num_frames.sym_sizes());
}

/// Calls `use` with a value of the tensor's element type: float or Bf16.
template <typename Use>
void with_elements(const at::Tensor& like, const Use& use) {
  like.scalar_type() == at::kFloat ? use(float{}) : use(kernels::Bf16{});
}

template <typename Element>
const Element* elements(const at::Tensor& tensor) {
  return static_cast<const Element*>(tensor.const_data_ptr());
}

template <typename Element>
Element* mutable_elements(const at::Tensor& tensor) {
  return static_cast<Element*>(tensor.mutable_data_ptr());
}

// ---- joint

using Pair = std::tuple<at::Tensor, at::Tensor>;

/// The result and the mask that its gradient needs.
Pair joint_kernel(const at::Tensor& given_f, const at::Tensor& given_g,
                  const at::Tensor& num_frames, const at::Tensor& num_labels,
                  double drop_probability, bool is_packed) {
  const at::Tensor f = given_f.contiguous(), g = given_g.contiguous();
  Grid grid(num_frames, num_labels, is_packed);
  grid.lattices.max_frames = f.size(1);
  grid.lattices.max_labels = g.size(1) - 1;
  check(grid.lattices);
  const JointSettings options{.width = f.size(2),
                              .drop_probability = drop_probability,
                              .seed = drop_probability > 0 ? operators::internal::draw_seed() : 0};
  const std::int64_t num_rows = grid.lattices.num_rows();
  const at::Tensor out =
      is_packed ? at::empty({num_rows, options.width}, f.options())
                : at::empty({f.size(0), f.size(1), g.size(1), options.width}, f.options());
  const at::Tensor mask = at::empty({num_rows, joint_mask_bytes(options.width)}, at::kByte);
  with_elements(f, [&](auto element) {
    using Element = decltype(element);
    joint(grid.lattices, options, elements<Element>(f), elements<Element>(g),
          mutable_elements<Element>(out), mask.mutable_data_ptr<std::uint8_t>(),
          operators::internal::on_torch_threads);
  });
  return {out, mask};
}

/// f_shape, g_shape   of the gradients that are made.
Pair joint_backward_kernel(const at::Tensor& given_dout, const at::Tensor& num_frames,
                           const at::Tensor& num_labels, const at::Tensor& mask,
                           at::IntArrayRef f_shape, at::IntArrayRef g_shape,
                           double drop_probability, bool is_packed) {
  const at::Tensor dout = given_dout.contiguous();
  Grid grid(num_frames, num_labels, is_packed);
  grid.lattices.max_frames = f_shape[1];
  grid.lattices.max_labels = g_shape[1] - 1;
  const JointSettings options{.width = f_shape[2], .drop_probability = drop_probability};
  const at::Tensor df = at::empty(f_shape, at::kFloat), dg = at::empty(g_shape, at::kFloat);
  with_elements(dout, [&](auto element) {
    joint_backward(grid.lattices, options, elements<decltype(element)>(dout),
                   mask.const_data_ptr<std::uint8_t>(), df.mutable_data_ptr<float>(),
                   dg.mutable_data_ptr<float>(), operators::internal::on_torch_threads);
  });
  return {df.to(dout.scalar_type()), dg.to(dout.scalar_type())};
}

class Joint : public torch::autograd::Function<Joint> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& f, const at::Tensor& g,
                            const at::Tensor& num_frames, const at::Tensor& num_labels,
                            double drop_probability, bool is_packed) {
    static const auto op = find_operator<decltype(joint_kernel)>("trireme::_transducer_joint");
    const auto [out, mask] = [&] {
      const BelowAutograd below;
      return op.call(f, g, num_frames, num_labels, drop_probability, is_packed);
    }();
    context->save_for_backward({num_frames, num_labels, mask});
    context->saved_data["f_shape"] = f.sym_sizes();
    context->saved_data["g_shape"] = g.sym_sizes();
    context->saved_data["drop_probability"] = drop_probability;
    context->saved_data["is_packed"] = is_packed;
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    using Backward =
        Pair(const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&,
             c10::SymIntArrayRef, c10::SymIntArrayRef, double, bool);
    static const auto op = find_operator<Backward>("trireme::_transducer_joint_backward");
    const auto saved = context->get_saved_variables();
    auto& data = context->saved_data;
    const auto [df, dg] = [&] {
      const BelowAutograd below;
      return op.call(gradients[0], saved[0], saved[1], saved[2], data["f_shape"].toSymIntVector(),
                     data["g_shape"].toSymIntVector(), data["drop_probability"].toDouble(),
                     data["is_packed"].toBool());
    }();
    return operators::internal::once_differentiable("transducer_joint", {df, dg, {}, {}, {}, {}});
  }
};

at::Tensor run_joint(const at::Tensor& f, const at::Tensor& g, const at::Tensor& num_frames,
                     const at::Tensor& num_labels, double drop_probability, bool is_packed) {
  const Expect expect("transducer_joint");
  expect.dtype("f", f, {at::kFloat, at::kBFloat16});
  expect.dtype("g", g, {f.scalar_type()});
  expect.dims("f", f, 3);
  expect.dims("g", g, 3);
  expect.shape("g", g, {f.sym_size(0), g.sym_size(1).max(1), f.sym_size(2)});
  check_lengths(expect, num_frames, num_labels);
  expect.shape("num_frames", num_frames, {f.sym_size(0)});
  expect.probability("drop_probability", drop_probability);
  return Joint::apply(f, g, num_frames, num_labels, drop_probability, is_packed);
}

// ---- loss

/// One call's sizes, for forward and backward.
struct LossCall {
  Grid grid;
  std::vector<std::int32_t> labels;
  TransducerTargets targets;

  LossCall(const at::Tensor& logits, const at::Tensor& given_labels, const at::Tensor& num_frames,
           const at::Tensor& num_labels, std::int64_t blank)
      : grid(num_frames, num_labels, logits.dim() == 2),
        labels(operators::internal::to_int32("labels", given_labels)) {
    const auto longest = std::max_element(grid.num_frames.begin(), grid.num_frames.end());
    const bool is_padded = logits.dim() == 4;
    grid.lattices.max_frames = is_padded ? logits.size(1) : *longest;
    grid.lattices.max_labels = given_labels.size(1);
    targets = {.labels = labels, .vocabulary = logits.size(-1), .blank = blank};
  }
};

/// A workspace for any lengths: transducer_workspace_bytes of the longest, whose rows are known.
std::int64_t most_workspace_bytes(const at::Tensor& logits, const at::Tensor& labels) {
  const std::int64_t samples = labels.size(0), positions = labels.size(1) + 1;
  const std::int64_t rows = logits.numel() / std::max<std::int64_t>(logits.size(-1), 1);
  return 20 * (rows + samples * (positions - 1) * positions) + samples * 16 * (positions + 2);
}

std::span<std::byte> bytes_of(const at::Tensor& workspace) {
  return {static_cast<std::byte*>(workspace.mutable_data_ptr()),
          static_cast<std::size_t>(workspace.numel())};
}

/// The loss and the workspace that its gradient needs.
Pair loss_kernel(const at::Tensor& given_logits, const at::Tensor& labels,
                 const at::Tensor& num_frames, const at::Tensor& num_labels, std::int64_t blank) {
  const at::Tensor logits = given_logits.contiguous();
  const LossCall call(logits, labels, num_frames, num_labels, blank);
  check(call.grid.lattices);
  if (logits.dim() == 2 && call.grid.lattices.num_rows() != logits.size(0)) {
    Expect("transducer_loss")
        .fail("packed logits must have " + std::to_string(call.grid.lattices.num_rows()) +
              " rows for these lengths, have " + std::to_string(logits.size(0)));
  }
  const at::Tensor workspace = at::empty({most_workspace_bytes(logits, labels)}, at::kByte);
  const at::Tensor loss = at::empty({num_frames.size(0)}, at::kFloat);
  with_elements(logits, [&](auto element) {
    transducer_loss(call.grid.lattices, call.targets, elements<decltype(element)>(logits),
                    bytes_of(workspace), loss.mutable_data_ptr<float>(),
                    operators::internal::on_torch_threads);
  });
  return {loss, workspace};
}

at::Tensor loss_backward_kernel(const at::Tensor& given_dloss, const at::Tensor& given_logits,
                                const at::Tensor& labels, const at::Tensor& num_frames,
                                const at::Tensor& num_labels, const at::Tensor& kept,
                                std::int64_t blank) {
  const at::Tensor logits = given_logits.contiguous(), dloss = given_dloss.contiguous();
  const LossCall call(logits, labels, num_frames, num_labels, blank);
  // The kernel uses the workspace up; the graph may be kept for another backward.
  const at::Tensor workspace = kept.clone(), dlogits = at::empty_like(logits);
  with_elements(logits, [&](auto element) {
    using Element = decltype(element);
    transducer_loss_backward(call.grid.lattices, call.targets, elements<Element>(logits),
                             bytes_of(workspace), dloss.const_data_ptr<float>(),
                             mutable_elements<Element>(dlogits),
                             operators::internal::on_torch_threads);
  });
  return dlogits;
}

class Loss : public torch::autograd::Function<Loss> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& given_logits,
                            const at::Tensor& labels, const at::Tensor& num_frames,
                            const at::Tensor& num_labels, std::int64_t blank) {
    static const auto op = find_operator<decltype(loss_kernel)>("trireme::_transducer_loss");
    const at::Tensor logits = given_logits.contiguous();
    const auto [loss, workspace] = [&] {
      const BelowAutograd below;
      return op.call(logits, labels, num_frames, num_labels, blank);
    }();
    context->save_for_backward({logits, labels, num_frames, num_labels, workspace});
    context->saved_data["blank"] = blank;
    return loss;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    static const auto op =
        find_operator<decltype(loss_backward_kernel)>("trireme::_transducer_loss_backward");
    const auto saved = context->get_saved_variables();
    const at::Tensor dlogits = [&] {
      const BelowAutograd below;
      return op.call(gradients[0], saved[0], saved[1], saved[2], saved[3], saved[4],
                     context->saved_data["blank"].toInt());
    }();
    return operators::internal::once_differentiable("transducer_loss", {dlogits, {}, {}, {}, {}});
  }
};

at::Tensor run_loss(const at::Tensor& logits, const at::Tensor& labels,
                    const at::Tensor& num_frames, const at::Tensor& num_labels,
                    std::int64_t blank) {
  const Expect expect("transducer_loss");
  expect.dtype("logits", logits, {at::kFloat, at::kBFloat16});
  expect.dtype("labels", labels, {at::kInt, at::kLong});
  check_lengths(expect, num_frames, num_labels);
  if (num_frames.sym_size(0) == 0) expect.fail("the batch must have a sample, has none");
  expect.dims("labels", labels, 2);
  expect.shape("labels", labels, {num_frames.sym_size(0), labels.sym_size(1)});
  if (logits.dim() != 2) {
    expect.dims("logits", logits, 4);
    expect.shape(
        "logits", logits,
        {num_frames.sym_size(0), logits.sym_size(1), labels.sym_size(1) + 1, logits.sym_size(3)});
  }
  return Loss::apply(logits, labels, num_frames, num_labels, blank);
}

TORCH_LIBRARY_FRAGMENT(trireme, library) {
  library.def(
      "transducer_joint(Tensor f, Tensor g, Tensor num_frames, Tensor num_labels, "
      "float drop_probability=0., bool is_packed=False) -> Tensor",
      {at::Tag::nondeterministic_seeded});
  library.def(
      "transducer_loss(Tensor logits, Tensor labels, Tensor num_frames, Tensor num_labels, "
      "int blank=0) -> Tensor");
  library.impl("transducer_joint", run_joint);
  library.impl("transducer_loss", run_loss);
  library.def(
      "_transducer_joint(Tensor f, Tensor g, Tensor num_frames, Tensor num_labels, "
      "float drop_probability, bool is_packed) -> (Tensor out, Tensor mask)",
      {at::Tag::nondeterministic_seeded});
  library.impl("_transducer_joint", kernel_below_autograd(joint_kernel));
  library.def(
      "_transducer_joint_backward(Tensor dout, Tensor num_frames, Tensor num_labels, Tensor mask, "
      "SymInt[] f_shape, SymInt[] g_shape, float drop_probability, bool is_packed) "
      "-> (Tensor df, Tensor dg)");
  library.impl("_transducer_joint_backward", kernel_below_autograd(joint_backward_kernel));
  library.def(
      "_transducer_loss(Tensor logits, Tensor labels, Tensor num_frames, Tensor num_labels, "
      "int blank) -> (Tensor loss, Tensor workspace)");
  library.impl("_transducer_loss", kernel_below_autograd(loss_kernel));
  library.def(
      "_transducer_loss_backward(Tensor dloss, Tensor logits, Tensor labels, Tensor num_frames, "
      "Tensor num_labels, Tensor workspace, int blank) -> Tensor");
  library.impl("_transducer_loss_backward", kernel_below_autograd(loss_backward_kernel));
}

TORCH_LIBRARY_IMPL(trireme, AutocastCPU, library) {
  library.impl("transducer_joint", under_autocast(2));
  library.impl("transducer_loss", under_autocast());
}

}  // namespace

at::Tensor transducer_joint(const at::Tensor& f, const at::Tensor& g,
                            const TransducerLengths& lengths, const JointOptions& options) {
  static const auto op =
      operators::internal::find_operator<decltype(run_joint)>("trireme::transducer_joint");
  return op.call(f, g, lengths.num_frames, lengths.num_labels, options.drop_probability,
                 options.is_packed);
}

at::Tensor transducer_loss(const at::Tensor& logits, const at::Tensor& labels,
                           const TransducerLengths& lengths, std::int64_t blank) {
  static const auto op =
      operators::internal::find_operator<decltype(run_loss)>("trireme::transducer_loss");
  return op.call(logits, labels, lengths.num_frames, lengths.num_labels, blank);
}

}  // namespace trireme::speech
