#include <ATen/autocast_mode.h>

#include "tests/habits/net.h"

namespace trireme::habits {
namespace {

std::vector<Habit> draws() {
  return {
      {"gumbel_softmax", vectors([](Net& net) -> Forward {
         auto a = net.linear("a");
         return [=](const Batch& k) mutable {
           const auto options = F::GumbelSoftmaxFuncOptions().tau(1).hard(true);
           return square_error(F::gumbel_softmax(a(k["x"]), options), k["y"]);
         };
       })},
      {"mixed_by_randperm", vectors([](Net& net) -> Forward {
         auto a = net.linear("a");
         return [=](const Batch& k) mutable {
           const auto order = torch::randperm(k["x"].size(0));
           const auto mixed = 0.7 * k["x"] + 0.3 * k["x"].index_select(0, order);
           return mean_of(0.7 * F::mse_loss(a(mixed), k["y"]) +
                          0.3 * F::mse_loss(a(mixed), k["y"].index_select(0, order)));
         };
       })},
      {"multinomial", vectors([](Net& net) -> Forward {
         auto a = net.linear("a");
         return [=](const Batch& k) mutable {
           const auto h = torch::softmax(a(k["x"]), 1);
           return mean_of(-(h.gather(1, h.multinomial(1)) + 1e-3).log().mean());
         };
       })},
      {"noise_drawn_in_place", vectors([](Net& net) -> Forward {
         auto a = net.linear("a");
         return [=](const Batch& k) mutable {
           const auto& x = k["x"];
           const auto noise = torch::empty_like(x).uniform_(-1, 1);
           const auto mask = torch::empty_like(x).bernoulli_(0.5);
           return square_error(a(x + torch::empty_like(x).normal_(0, 0.1) + noise * mask), k["y"]);
         };
       })},
      {"random_slopes_and_alpha_dropout", vectors([](Net& net) -> Forward {
         auto a = net.linear("a");
         auto q = net.part("q", nn::RReLU());
         auto d = net.part("d", nn::AlphaDropout(0.2));
         auto f = net.part("f", nn::FeatureAlphaDropout(0.2));
         return [=](const Batch& k) mutable { return square_error(f(d(q(a(k["x"])))), k["y"]); };
       })},
      {"fractional_max_pool", workload(Data::kPictures,
                                       [](Net& net) -> Forward {
                                         auto c = net.part("c", nn::Conv2d(3, 4, 3));
                                         const auto options =
                                             nn::FractionalMaxPool2dOptions(3).output_ratio(0.5);
                                         auto f = net.part("f", nn::FractionalMaxPool2d(options));
                                         return [=](const Batch& k) mutable {
                                           return classify(f(c(k["x"])).mean({2, 3}), k);
                                         };
                                       })},
  };
}

std::vector<Habit> dtypes() {
  return {
      {"f64", vectors([](Net& net) -> Forward {
         auto a = net.linear("a");
         a->to(torch::kDouble);
         return [=](const Batch& k) mutable {
           return square_error(a(k["x"].to(torch::kDouble)), k["y"].to(torch::kDouble));
         };
       })},
      {"bf16",
       vectors([](Net& net) -> Forward {
         auto a = net.linear("a");
         a->to(torch::kBFloat16);
         return [=](const Batch& k) mutable {
           return square_error(a(k["x"].to(torch::kBFloat16)).to(torch::kFloat), k["y"]);
         };
       }),
       Outcome::kRefused,
       {"a trainable parameter has dtype", "by autocast"}},
      {"weight_cast_to_bf16", vectors([](Net& net) -> Forward {
         auto a = net.linear("a");
         return [=](const Batch& k) mutable {
           const auto y = F::linear(k["x"].to(torch::kBFloat16), a->weight.to(torch::kBFloat16));
           return square_error(y.to(torch::kFloat), k["y"]);
         };
       })},
      {"autocast_to_bf16", vectors([](Net& net) -> Forward {
         auto a = net.linear("a"), b = net.linear("b");
         return [=](const Batch& k) mutable {
           at::autocast::set_autocast_enabled(at::kCPU, true);
           const auto h = torch::tanh(b(torch::tanh(a(k["x"]))));
           at::autocast::clear_cache();
           at::autocast::set_autocast_enabled(at::kCPU, false);
           return square_error(h.to(torch::kFloat), k["y"]);
         };
       })},
      {"complex_weight",
       vectors([](Net& net) -> Forward {
         auto w = net.weight("w", torch::randn({5}, torch::kComplexFloat));
         return [=](const Batch& k) mutable {
           return square_error(torch::fft::irfft(torch::fft::rfft(k["x"]) * w, 8), k["y"]);
         };
       }),
       Outcome::kRefused,
       {"a trainable parameter has dtype", "by autocast"}},
      {"fourier_transform", vectors([](Net& net) -> Forward {
         auto a = net.linear("a");
         return [=](const Batch& k) mutable {
           return square_error(torch::fft::irfft(torch::fft::rfft(a(k["x"])), 8), k["y"]);
         };
       })},
  };
}

}  // namespace

std::vector<Habit> random_habits() {
  std::vector<Habit> all = draws();
  const std::vector<Habit> more = dtypes();
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace trireme::habits
