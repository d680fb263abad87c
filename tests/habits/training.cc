#include "tests/habits/net.h"

namespace trireme::habits {
namespace {

const std::vector<std::string> kToggled = {"inside forward", "near parameter",
                                           "parameter.detach()"};

std::vector<Habit> frozen() {
  return {
      {"frozen_before_training", vectors([](Net& net) -> Forward {
         auto a = net.linear("a"), b = net.linear("b");
         for (auto& p : a->parameters()) p.requires_grad_(false);
         return [=](const Batch& k) mutable { return square_error(b(a(k["x"])), k["y"]); };
       })},
      {"frozen_in_forward", vectors([](Net& net) -> Forward {
         auto a = net.linear("a"), b = net.linear("b");
         return [=](const Batch& k) mutable {
           for (auto& p : a->parameters()) p.requires_grad_(false);
           return square_error(b(a(k["x"])), k["y"]);
         };
       }),
       Outcome::kRefused, kToggled},
  };
}

std::vector<Habit> toggled() {
  return {
      {"toggled_linear_of_a_gan",
       vectors([](Net& net) -> Forward {
         auto a = net.linear("a"), b = net.linear("b");
         return [=](const Batch& k) mutable {
           const auto h = a(k["x"]);
           const auto real = b(h.detach());
           for (auto& p : b->parameters()) p.requires_grad_(false);
           const auto fake = b(h);
           for (auto& p : b->parameters()) p.requires_grad_(true);
           return Losses{mean_loss(F::mse_loss(real, k["y"]), "d"),
                         mean_loss(-F::mse_loss(fake, k["y"]), "g")};
         };
       }),
       Outcome::kRefused,
       {"'b.weight', whose requires_grad was taken off",
        "return all losses and say which moves what"}},
      {"toggled_convolution",
       pictures([](Net& net) -> Forward {
         auto a = net.part("a", nn::Conv2d(3, 4, 3)), b = net.part("b", nn::Conv2d(4, 4, 3));
         return [=](const Batch& k) mutable {
           const auto h = a(k["x"]);
           b->weight.requires_grad_(false);
           const auto v = b(h);
           b->weight.requires_grad_(true);
           return mean_of(v.square().mean());
         };
       }),
       Outcome::kRefused,
       {"'b.weight', whose requires_grad was taken off inside forward", "aten::conv2d"}},
      {"toggled_factor",
       vectors([](Net& net) -> Forward {
         auto w = net.weight("w", torch::randn({8})), u = net.weight("u", torch::randn({8}));
         return [=](const Batch& k) mutable {
           const auto h = k["x"] * w;
           u.requires_grad_(false);
           const auto v = h * u;
           u.requires_grad_(true);
           return square_error(v, k["y"]);
         };
       }),
       Outcome::kRefused,
       {"'u', whose requires_grad was taken off inside forward", "aten::mul", "detach()"}},
      {"unfrozen_by_the_first_forward",
       vectors([](Net& net) -> Forward {
         auto w = net.weight("w", torch::randn({8})), u = net.weight("u", torch::randn({8}));
         u.requires_grad_(false);
         return [=](const Batch& k) mutable {
           const auto h = k["x"] * w;
           u.requires_grad_(true);
           return square_error(h * u, k["y"]);
         };
       }),
       Outcome::kRefused,
       {"'u', whose requires_grad was set inside forward", "aten::mul"}},
  };
}

std::vector<Habit> without_gradients() {
  return {
      {"teacher_without_a_gradient", vectors([](Net& net) -> Forward {
         auto a = net.linear("student"), b = net.linear("teacher");
         return [=](const Batch& k) mutable {
           Tensor target;
           {
             const torch::NoGradGuard no_grad;
             target = b(k["x"]);
           }
           return square_error(a(k["x"]), target);
         };
       })},
      {"branch_without_a_gradient_of_the_same_weights", vectors([](Net& net) -> Forward {
         auto a = net.linear("a"), b = net.linear("b");
         return [=](const Batch& k) mutable {
           const auto z = a(k["x"]);
           Tensor target;
           {
             const torch::NoGradGuard no_grad;
             target = a(k["y"]);
           }
           return square_error(b(z), target);
         };
       })},
      {"gradient_reversal_by_arithmetic", vectors([](Net& net) -> Forward {
         auto g = net.linear("g"), d = net.linear("d", 8, 1);
         return [=](const Batch& k) mutable {
           const auto fake = g(k["x"]);
           const auto reversed = 2 * fake.detach() - fake;
           const auto real = d(k["y"]), made = d(reversed);
           return Losses{
               mean_loss(F::binary_cross_entropy_with_logits(real, torch::ones_like(real)), "real"),
               mean_loss(F::binary_cross_entropy_with_logits(made, torch::zeros_like(made)),
                         "fake")};
         };
       })},
      {"unused_parameter", vectors([](Net& net) -> Forward {
         auto a = net.linear("a");
         net.linear("unused");
         return [=](const Batch& k) mutable { return square_error(a(k["x"]), k["y"]); };
       })},
  };
}

Forward skip_by_dice(Net& net, double probability) {
  auto a = net.linear("a"), b = net.linear("b");
  return [=, n = &net](const Batch& k) mutable {
    auto h = a(k["x"]);
    if (std::uniform_real_distribution<>()(n->dice) >= probability) h = h + torch::relu(b(h));
    return square_error(h, k["y"]);
  };
}

std::vector<Habit> host_state_and_sizes() {
  return {
      {"layer_dropped_by_dice",
       vectors([](Net& net) { return skip_by_dice(net, 0.5); }),
       Outcome::kRefused,
       {"differs between recordings", "sizes 4, 6 and 10", "trireme::opaque"}},
      {"layer_rarely_dropped_by_dice", vectors([](Net& net) { return skip_by_dice(net, 0.1); }),
       Outcome::kDrifts},
      {"other_branch_at_every_tenth_call", vectors([](Net& net) -> Forward {
         auto a = net.linear("a");
         return [=, n = &net](const Batch& k) mutable {
           const auto h = a(k["x"]);
           return square_error(++n->calls % 10 == 0 ? torch::tanh(h) : h, k["y"]);
         };
       }),
       Outcome::kDrifts},
      {"loop_over_samples", vectors([](Net& net) -> Forward {
         auto a = net.linear("a");
         return [=](const Batch& k) mutable {
           std::vector<Tensor> rows;
           for (std::int64_t i = 0; i < k["x"].size(0); ++i) {
             rows.push_back(torch::relu(k["x"][i]));
           }
           return square_error(a(torch::stack(rows)), k["y"]);
         };
       }),
       Outcome::kExact},
      {"view_of_a_fixed_batch", vectors([](Net& net) -> Forward {
         auto a = net.linear("a");
         return [=](const Batch& k) mutable {
           return square_error(a(k["x"]).view({kMicrobatch, 8}), k["y"]);
         };
       }),
       Outcome::kExact},
      {"times_one_over_n", vectors([](Net& net) -> Forward {
         auto a = net.linear("a");
         return [=](const Batch& k) mutable {
           const double n = static_cast<double>(k["x"].size(0));
           return mean_of((a(k["x"]) - k["y"]).square().sum() * (1.0 / n));
         };
       }),
       Outcome::kExact},
      {"divided_by_n", vectors([](Net& net) -> Forward {
         auto a = net.linear("a");
         return [=](const Batch& k) mutable {
           return mean_of((a(k["x"]) - k["y"]).square().sum() / k["x"].size(0));
         };
       })},
      {"divided_by_the_square_of_n", vectors([](Net& net) -> Forward {
         auto a = net.linear("a");
         return [=](const Batch& k) mutable {
           const auto h = a(k["x"]);
           const auto n = static_cast<double>(h.size(0));
           return mean_of(torch::mm(h, h.t()).sum() / (n * n));
         };
       }),
       Outcome::kExact},
  };
}

std::vector<Habit> opaque_losses() {
  return {
      {"leaf_made_in_an_opaque_loss", vectors([](Net& net) -> Forward {
         auto a = net.linear("a");
         auto loss = opaque("loss", [](const TensorList& in) -> TensorList {
           auto total = torch::zeros({});
           total.requires_grad_(true);
           return {total + F::mse_loss(in[0], in[1])};
         });
         return [=](const Batch& k) mutable { return mean_of(loss({a(k["x"]), k["y"]})[0]); };
       })},
      {"leaf_made_in_the_loss",
       vectors([](Net& net) -> Forward {
         auto a = net.linear("a");
         return [=](const Batch& k) mutable {
           auto total = torch::zeros({});
           total.requires_grad_(true);
           return mean_of(total + F::mse_loss(a(k["x"]), k["y"]));
         };
       }),
       Outcome::kRefused,
       {"leaf made inside forward", "aten::add", "trireme::opaque"}},
      {"item_in_an_opaque_loss", vectors([](Net& net) -> Forward {
         auto a = net.linear("a");
         auto loss = opaque("loss", [](const TensorList& in) -> TensorList {
           const auto scale = in[0].abs().max().item<float>();
           return {F::mse_loss(in[0], in[1]) / (1 + scale)};
         });
         return [=](const Batch& k) mutable { return mean_of(loss({a(k["x"]), k["y"]})[0]); };
       })},
  };
}

/// A number that changes with the step, declared; and code of its own that keeps a count.
std::vector<Habit> declared() {
  Habit scalar{
      "step_scalar", [] {
        Workload workload = vectors([](Net& net) -> Forward {
          auto a = net.linear("a"), b = net.linear("b");
          return [=](const Batch& k) mutable {
            return square_error(b(torch::tanh(a(k["x"]) * k["heat"])), k["y"]);
          };
        })();
        workload.model.step_scalars.push_back(
            {"heat", [](std::int64_t step) { return 1.0 / static_cast<double>(2 + step); }});
        return workload;
      }};
  Habit counter{"opaque_module_with_a_buffer", vectors([](Net& net) -> Forward {
                  struct Counting : nn::Module {
                    nn::Linear inner = register_module("inner", nn::Linear(8, 8));
                    Tensor calls = register_buffer("calls", torch::zeros({1}));
                    TensorList forward(const TensorList& in) {
                      if (is_training()) calls.add_(1);
                      return {torch::tanh(inner(in[0])) / calls.clamp_min(1)};
                    }
                  };
                  auto a = net.linear("a"), b = net.linear("b");
                  const auto counting = std::make_shared<Counting>();
                  net.register_module("counting", counting);
                  auto count = opaque("counting", counting);
                  return [=](const Batch& k) mutable {
                    return square_error(b(count({a(k["x"])})[0]), k["y"]);
                  };
                })};
  counter.takes_replicas = false;
  return {scalar, counter};
}

std::vector<Habit> plain_losses() {
  return {
      {"one_hot_with_classes", vectors([](Net& net) -> Forward {
         auto a = net.linear("a", 8, 4);
         return [=](const Batch& k) mutable {
           return square_error(a(k["x"]), F::one_hot(k["c"], 4).to(torch::kFloat));
         };
       })},
      {"gaussian_likelihood", vectors([](Net& net) -> Forward {
         auto a = net.linear("a", 8, 16);
         return [=](const Batch& k) mutable {
           const auto h = a(k["x"]).chunk(2, 1);
           return mean_of(0.5 * (h[1] + (h[0] - k["y"]).square() / h[1].exp()).mean());
         };
       })},
      {"sum_loss_with_an_integer_weight", vectors([](Net& net) -> Forward {
         auto a = net.linear("a", 8, 4);
         return [=](const Batch& k) mutable {
           const auto target = torch::where(k["c"] == 0, k["c"], torch::full_like(k["c"], -100));
           const auto options =
               F::CrossEntropyFuncOptions().ignore_index(-100).reduction(torch::kSum);
           return Losses{
               sum_loss(F::cross_entropy(a(k["x"]), target, options), (target == 0).sum())};
         };
       })},
      {"mean_where_all_may_be_ignored", vectors([](Net& net) -> Forward {
         auto a = net.linear("a", 8, 4);
         return [=](const Batch& k) mutable {
           const auto target = torch::where(k["c"] == 0, k["c"], torch::full_like(k["c"], -100));
           return mean_of(F::cross_entropy(a(k["x"]), target,
                                           F::CrossEntropyFuncOptions().ignore_index(-100)));
         };
       })},
      {"loss_that_is_not_finite", vectors([](Net& net) -> Forward {
         auto a = net.linear("a");
         return [=](const Batch& k) mutable { return mean_of(a(k["x"]).log().mean()); };
       })},
  };
}

}  // namespace

std::vector<Habit> training_habits() {
  std::vector<Habit> all = frozen();
  for (auto& part : {toggled(), without_gradients(), host_state_and_sizes(), declared(),
                     opaque_losses(), plain_losses()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

}  // namespace trireme::habits
