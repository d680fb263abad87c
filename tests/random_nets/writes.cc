// The operations that write, change the gradient mode, or read what others wrote.

#include <algorithm>
#include <sstream>

#include "tests/random_nets/program.h"
#include "tests/random_nets/random_net.h"
#include "trireme/model.h"

namespace trireme::random_nets {

void Program::write() {
  const Form form = values_[some()].form;
  const std::size_t a = some_writable(form), b = some(values_[a].form);
  Tensor x = values_[a].tensor;
  const Tensor y = values_[b].form == values_[a].form ? values_[b].tensor : x;
  const std::string names = "v" + std::to_string(a) + " <- v" + std::to_string(b);
  switch (pick(9)) {
    case 0:
      note("add_ " + names);
      x.add_(y);
      return;
    case 1:
      note("sub_ " + names);
      x.sub_(y, 0.5);
      return;
    case 2:
      note("copy_ " + names);
      x.copy_(y.clone());
      return;
    case 3:
      note("mul_ 0.5 " + names);
      x.mul_(0.5);
      return;
    case 4:
      note("mul_ " + names);
      save(b);
      x.mul_(torch::tanh(y));
      return;
    case 5:
      note("tanh_ " + names);
      x.tanh_();
      return save(a);
    case 6:
      note("relu_ " + names);
      x.relu_();
      return save(a);
    case 7:
      note("+= bias " + names);
      x.add_(values_[a].form == Form::kFull || values_[a].form == Form::kRow ? bias() : y);
      return;
    default:
      note("zero_ " + names);
      x.zero_();
  }
}

void Program::write_part() {
  const std::size_t a = some_writable(Form::kFull), b = some(Form::kFull);
  Tensor x = values_[a].tensor;
  const Tensor y = values_[b].tensor;
  const std::string names = "v" + std::to_string(a) + " <- v" + std::to_string(b);
  switch (pick(9)) {
    case 0:
      note("select.copy_ " + names);
      x.select(1, 1).copy_(y.select(1, 2));
      return;
    case 1:
      note("narrow.mul_ " + names);
      x.narrow(1, 2, 3).mul_(0.5);
      return;
    case 2:
      note("t.add_ " + names);
      x.t().add_(y.t());
      return;
    case 3:
      note("index_put_ " + names);
      x.index_put_({torch::indexing::Slice(), torch::tensor({0, 3})}, y.narrow(1, 0, 2));
      return;
    case 4:
      note("masked_fill_ " + names);
      x.masked_fill_(y.detach() > 0.5, 0.1);
      return;
    case 5:
      note("index_add_ " + names);
      x.index_add_(1, torch::tensor({1, 4}), y.narrow(1, 1, 2));
      return;
    case 6:
      note("unflatten.select.add_ " + names);
      x.unflatten(1, {2, 3}).select(1, 0).add_(y.narrow(1, 3, 3));
      return;
    case 7:
      note("scatter_ " + names);
      x.scatter_(1, torch::zeros({x.size(0), 1}, torch::kLong), y.narrow(1, 0, 1));
      return;
    default:
      note("select.fill_ " + names);
      x.select(1, 0).fill_(0.3);
  }
}

void Program::change_mode() {
  const std::size_t a = some(Form::kFull);
  const Tensor x = values_[a].tensor;
  const std::string name = "(v" + std::to_string(a) + ")";
  switch (pick(6)) {
    case 0:
      return keep(x.detach().clone(), Form::kFull, "detach.clone" + name);
    case 1:
      return keep_view(x.detach(), Form::kFull, a, "detach");
    case 2: {
      const torch::NoGradGuard no_grad;
      return keep(torch::mm(x, weight()), Form::kFull, "no_grad mm" + name);
    }
    case 3: {
      const std::size_t b = some_writable(Form::kFull);
      const torch::NoGradGuard no_grad;
      note("no_grad add_ v" + std::to_string(b) + " <- v" + std::to_string(a));
      values_[b].tensor.add_(x);
      return;
    }
    case 4: {
      const Tensor toggled = weight();
      if (!toggled.requires_grad() || !chance(15)) return;
      toggled.set_requires_grad(false);
      keep(torch::mm(x, toggled), Form::kFull, "toggled mm" + name);
      toggled.set_requires_grad(true);
      return save(a);
    }
    default: {
      const torch::NoGradGuard no_grad;
      const torch::AutoGradMode with_grad(true);
      keep(torch::mm(x, weight()), Form::kFull, "grad mm" + name);
      return save(a);
    }
  }
}

void Program::draw() {
  const std::size_t a = some(Form::kFull);
  const Tensor x = values_[a].tensor;
  const std::string name = "(v" + std::to_string(a) + ")";
  switch (pick(4)) {
    case 0:
      save(a);
      return keep(torch::dropout(x, 0.25, net_.is_training()), Form::kFull, "dropout" + name);
    case 1:
      return keep(x + 0.1 * torch::randn_like(x), Form::kFull, "randn_like" + name);
    case 2:
      return keep(torch::rand({x.size(0), kWidth}), Form::kFull, "torch::rand");
    default:
      return keep(torch::empty_like(x).normal_(0, 0.1), Form::kFull, "normal_" + name);
  }
}

void Program::touch_buffer() {
  const std::size_t a = some(Form::kFull);
  const Tensor x = values_[a].tensor;
  const std::string name = "(v" + std::to_string(a) + ")";
  switch (pick(4)) {
    case 0:
      note("written.mul_.add_" + name);
      net_.written.mul_(0.9).add_(x.detach().mean(0), 0.1);
      return;
    case 1:
      return keep(x + net_.written, Form::kFull, "add written" + name);
    case 2:
      return keep(x * net_.fixed.tanh(), Form::kFull, "mul fixed" + name);
    default: {
      const torch::NoGradGuard no_grad;
      note("no_grad written.copy_" + name);
      net_.written.copy_(x.mean(0));
    }
  }
}

void Program::select() {
  const std::size_t a = some(Form::kFull);
  const Tensor x = values_[a].tensor;
  const std::string name = "(v" + std::to_string(a) + ")";
  save(a);
  switch (pick(5)) {
    case 0: {
      const auto parts = x.chunk(2, 1);
      keep_view(parts[0], Form::kHalf, a, "chunk 0");
      return keep_view(parts[1], Form::kHalf, a, "chunk 1");
    }
    case 1: {
      const auto [sorted, order] = x.sort(1);
      return keep(sorted + x.gather(1, order), Form::kFull, "sort.gather" + name);
    }
    case 2:
      return keep(std::get<0>(x.topk(3, 1)), Form::kHalf, "topk" + name);
    case 3:
      return keep(x.cumsum(1) * 0.2, Form::kFull, "cumsum" + name);
    default: {
      const auto rows = x.unbind(1);
      return keep(torch::stack({rows[5], rows[0], rows[1], rows[1], rows[2], rows[3]}, 1),
                  Form::kFull, "unbind.stack" + name);
    }
  }
}

Losses Program::losses() {
  const auto loss_of = [&](std::size_t value) {
    return torch::tanh(values_[value].tensor).square().mean();
  };
  // Of the newest values, so that most of the program counts; a parameter, so that there is one.
  Tensor total = loss_of(values_.size() - 1) + 0.1 * net_.weights[0].square().mean();
  for (std::size_t i = 2; i < 5 && i < values_.size(); ++i) {
    total = total + loss_of(values_.size() - i);
  }
  Losses result = {mean_loss(total)};
  if (chance(20)) {
    const Tensor marks = (batch_["i"] > 1).to(torch::kFloat);
    const Tensor sum = (torch::tanh(torch::mm(full(), net_.weights[0])).sum(1) * marks).sum();
    result.push_back(sum_loss(sum, marks.sum() + 1, "weighted"));
  }
  return result;
}

MakeWorkload make(std::uint64_t seed, int num_operations) {
  return [seed, num_operations] {
    constexpr std::int64_t kSamples = 24;
    const auto net = std::make_shared<Net>(seed);
    const auto forward = [net, num_operations](const Batch& batch) {
      return Program(*net, batch, nullptr).run(num_operations);
    };
    return Workload{make_model(net, forward),
                    tensor_source({{"x", torch::randn({kSamples, kWidth})},
                                   {"i", torch::randint(kWidth, {kSamples})}}),
                    nullptr};
  };
}

std::string describe(std::uint64_t seed, int num_operations) {
  Net net(seed);
  Batch batch;
  batch.set("x", torch::randn({kMicrobatch, kWidth}));
  batch.set("i", torch::randint(kWidth, {kMicrobatch}));
  std::ostringstream log;
  Program(net, batch, &log).run(num_operations);
  return log.str();
}

}  // namespace trireme::random_nets
