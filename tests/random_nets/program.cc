#include "tests/random_nets/program.h"

#include <ATen/core/grad_mode.h>

#include <utility>

namespace trireme::random_nets {
namespace {

namespace F = torch::nn::functional;

}  // namespace

Net::Net(std::uint64_t seed) : seed(seed) {
  std::mt19937_64 random(seed + 1);
  const auto add = [&](const std::string& name, at::IntArrayRef shape) {
    const auto data = torch::randn(shape) * 0.4;
    // One is always trained: else there may be nothing to train.
    return register_parameter(name, data, /*requires_grad=*/random() % 5 != 0 || name == "w0");
  };
  for (int i = 0; i < 3; ++i) {
    weights.push_back(add("w" + std::to_string(i), {kWidth, kWidth}));
    biases.push_back(add("b" + std::to_string(i), {kWidth}));
  }
  written = register_buffer("written", torch::zeros({kWidth}));
  fixed = register_buffer("fixed", torch::randn({kWidth}));
}

Program::Program(Net& net, const Batch& batch, std::ostream* log)
    : net_(net), batch_(batch), log_(log), random_(net.seed) {
  keep(batch["x"], Form::kFull, "batch x");
}

void Program::note(const std::string& what) {
  if (log_ != nullptr) *log_ << what << "\n";
}

void Program::keep(Tensor tensor, Form form, const std::string& what) {
  note("v" + std::to_string(values_.size()) + " = " + what);
  values_.push_back({std::move(tensor), form, num_groups_++});
}

void Program::keep_view(Tensor tensor, Form form, std::size_t of, const std::string& what) {
  note("v" + std::to_string(values_.size()) + " = " + what + " of v" + std::to_string(of));
  values_.push_back({std::move(tensor), form, values_[of].group});
}

/// Newer ones more often.
std::size_t Program::some() {
  const std::size_t newest = std::min<std::size_t>(values_.size(), 6);
  return chance(70) ? values_.size() - 1 - pick(newest) : pick(values_.size());
}

/// The newest of that form from a random place on backwards; the batch is always there for kFull.
std::size_t Program::some(Form form) {
  for (int tries = 0; tries < 8; ++tries) {
    const std::size_t value = some();
    if (values_[value].form == form) return value;
  }
  for (std::size_t value = values_.size(); value-- > 0;) {
    if (values_[value].form == form) return value;
  }
  return 0;
}

/// Mostly one that no backward needs: else few programs would be valid.
std::size_t Program::some_writable(Form form) {
  std::size_t value = 0;
  for (int tries = 0; tries < 8; ++tries) {
    value = some(form);
    if (value != 0 && (!saved_.contains(values_[value].group) || chance(3))) return value;
  }
  keep(torch::zeros_like(full()), Form::kFull, "torch::zeros_like");
  return values_.size() - 1;
}

Losses Program::run(int num_operations) {
  for (int i = 0; i < num_operations; ++i) step();
  return losses();
}

void Program::step() {
  const auto kind = pick(100);
  if (kind < 14) return pointwise();
  if (kind < 26) return add_up();
  if (kind < 40) return layer();
  if (kind < 50) return factory();
  if (kind < 60) return view();
  if (kind < 66) return reshape();
  if (kind < 77) return write();
  if (kind < 88) return write_part();
  if (kind < 92) return change_mode();
  if (kind < 94) return draw();
  if (kind < 96) return touch_buffer();
  select();
}

void Program::pointwise() {
  const std::size_t a = some(), b = some(values_[a].form);
  const Tensor x = values_[a].tensor, y = values_[b].tensor;
  const Form form = values_[a].form;
  const std::string names = "(v" + std::to_string(a) + ", v" + std::to_string(b) + ")";
  save(a);
  if (values_[b].form == form && chance(30)) {
    save(b);
    if (chance(60)) {
      keep((x * y).clamp(-4, 4), form, "mul" + names);
    } else {
      keep(torch::maximum(x, y), form, "maximum" + names);
    }
    return;
  }
  switch (pick(5)) {
    case 0:
      keep(torch::tanh(x), form, "tanh" + names);
      break;
    case 1:
      keep(torch::sigmoid(x), form, "sigmoid" + names);
      break;
    case 2:
      keep(torch::relu(x), form, "relu" + names);
      break;
    case 3:
      keep(torch::sin(x), form, "sin" + names);
      break;
    default:
      keep(torch::softmax(x, 0), form, "softmax" + names);
      break;
  }
  save(values_.size() - 1);
}

void Program::add_up() {
  const std::size_t a = some(), b = some(values_[a].form);
  const Tensor x = values_[a].tensor, y = values_[b].tensor;
  const Form form = values_[a].form;
  const std::string names = "(v" + std::to_string(a) + ", v" + std::to_string(b) + ")";
  if (values_[b].form != form) return keep(-x, form, "neg" + names);
  switch (pick(5)) {
    case 0:
      return keep(x + y, form, "add" + names);
    case 1:
      return keep(x - 0.5 * y, form, "sub" + names);
    case 2:
      return keep(torch::where(x.detach() > 0, x, y), form, "where" + names);
    case 3:
      return keep(torch::stack({x, y}).mean(0), form, "stack.mean" + names);
    default:
      return keep(x.clone(), form, "clone" + names);
  }
}

void Program::layer() {
  const std::size_t a = some(Form::kFull);
  const Tensor x = values_[a].tensor;
  const std::string name = "(v" + std::to_string(a) + ")";
  save(a);
  switch (pick(6)) {
    case 0:
      return keep(F::linear(x, weight(), bias()), Form::kFull, "linear" + name);
    case 1:
      return keep(x + bias(), Form::kFull, "add bias" + name);
    case 2:
      return keep(torch::mm(x, weight()), Form::kFull, "mm" + name);
    case 3:
      return keep(x + weight().index_select(0, batch_["i"]), Form::kFull, "index_select" + name);
    case 4:
      return keep(torch::layer_norm(x, {kWidth}, bias(), bias()), Form::kFull, "norm" + name);
    default: {
      const Tensor once = weight();
      return keep(torch::mm(torch::mm(x, once), once.t()), Form::kFull, "mm twice" + name);
    }
  }
}

void Program::factory() {
  const Tensor x = full();
  switch (pick(8)) {
    case 0:
      return keep(torch::zeros_like(x), Form::kFull, "torch::zeros_like");
    case 1:
      return keep(at::zeros_like(x), Form::kFull, "at::zeros_like");
    case 2:
      return keep(torch::zeros({x.size(0), kWidth}), Form::kFull, "torch::zeros");
    case 3:
      return keep(x.new_ones({x.size(0), kWidth}), Form::kFull, "new_ones");
    case 4:
      return keep(torch::empty_like(x).copy_(x), Form::kFull, "torch::empty_like.copy_");
    case 5:
      return keep(torch::full_like(x, 0.25), Form::kFull, "torch::full_like");
    case 6:
      return keep(torch::arange(kWidth, torch::kFloat) * 0.1, Form::kRow, "torch::arange");
    default:
      return keep(torch::ones({kWidth}), Form::kRow, "torch::ones");
  }
}

void Program::view() {
  const std::size_t a = some();
  const Tensor x = values_[a].tensor;
  switch (values_[a].form) {
    case Form::kFull:
      switch (pick(6)) {
        case 0:
          return keep_view(x.t(), Form::kTurned, a, "t");
        case 1:
          return keep_view(x.narrow(1, 0, 3), Form::kHalf, a, "narrow");
        case 2:
          return keep_view(x.slice(1, 0, kWidth, 2), Form::kHalf, a, "slice by two");
        case 3:
          return keep_view(x.unflatten(1, {2, 3}), Form::kFolded, a, "unflatten");
        case 4:
          return keep_view(x.select(0, 0), Form::kRow, a, "select");
        default:
          return keep_view(x.view({-1, kWidth}), Form::kFull, a, "view");
      }
    case Form::kTurned:
      return keep_view(x.transpose(0, 1), Form::kFull, a, "transpose");
    case Form::kFolded:
      return chance(50) ? keep_view(x.flatten(1), Form::kFull, a, "flatten")
                        : keep_view(x.select(1, 1), Form::kHalf, a, "select");
    case Form::kRow:
      return keep_view(x.expand({batch_["x"].size(0), kWidth}), Form::kFull, a, "expand");
    case Form::kHalf:
      return keep_view(x.unsqueeze(2).squeeze(2), Form::kHalf, a, "unsqueeze");
  }
}

void Program::reshape() {
  const std::size_t a = some();
  const Tensor x = values_[a].tensor;
  const std::string name = "(v" + std::to_string(a) + ")";
  switch (values_[a].form) {
    case Form::kTurned:
      return keep(x.t().contiguous(), Form::kFull, "t.contiguous" + name);
    case Form::kFolded:
      return keep_view(x.reshape({-1, kWidth}), Form::kFull, a, "reshape");
    case Form::kHalf:
      return keep(torch::cat({x, x * 0.5}, 1), Form::kFull, "cat" + name);
    case Form::kRow:
      return keep(x.repeat({batch_["x"].size(0), 1}), Form::kFull, "repeat" + name);
    case Form::kFull:
      return keep(x.mean(0), Form::kRow, "mean" + name);
  }
}

}  // namespace trireme::random_nets
