#include "tests/habits/net.h"

namespace trireme::habits {
namespace {

std::vector<Habit> norms() {
  Habit all{"norms_of_all_kinds", pictures([](Net& net) -> Forward {
              auto c = net.part("c", nn::Conv2d(3, 4, 3));
              auto g = net.part("g", nn::GroupNorm(2, 4));
              const auto tracked =
                  nn::InstanceNorm2dOptions(4).affine(true).track_running_stats(true);
              auto i = net.part("i", nn::InstanceNorm2d(tracked));
              auto l = net.part("l", nn::LocalResponseNorm(2));
              auto p = net.part("p", nn::PReLU(nn::PReLUOptions().num_parameters(4)));
              const auto cumulative = nn::BatchNorm2dOptions(4).momentum(std::nullopt);
              auto b = net.part("b", nn::BatchNorm2d(cumulative));
              return [=](const Batch& k) mutable {
                return classify(b(p(l(i(g(c(k["x"])))))).mean({2, 3}), k);
              };
            })};
  Habit instance{
      "instance_norm_that_tracks", pictures([](Net& net) -> Forward {
        auto c = net.part("c", nn::Conv2d(3, 4, 3));
        const auto tracked = nn::InstanceNorm2dOptions(4).affine(true).track_running_stats(true);
        auto i = net.part("i", nn::InstanceNorm2d(tracked));
        return [=](const Batch& k) mutable { return classify(i(c(k["x"])).mean({2, 3}), k); };
      })};
  all.takes_replicas = instance.takes_replicas = false;
  Habit cumulative{
      "batch_norm_of_cumulative_averages", pictures([](Net& net) -> Forward {
        auto c = net.part("c", nn::Conv2d(3, 4, 3));
        auto b = net.part("b", nn::BatchNorm2d(nn::BatchNorm2dOptions(4).momentum(std::nullopt)));
        return [=](const Batch& k) mutable { return classify(b(c(k["x"])).mean({2, 3}), k); };
      })};
  return {all, instance, cumulative};
}

std::vector<Habit> spatial() {
  return {
      {"spatial_transformer", pictures([](Net& net) -> Forward {
         auto t = net.linear("t", 3, 6);
         auto c = net.part("c", nn::Conv2d(3, 4, 3));
         return [=](const Batch& k) mutable {
           const auto theta = t(k["x"].mean({2, 3})).view({-1, 2, 3});
           const auto grid = F::affine_grid(theta, k["x"].sizes());
           const auto options = F::GridSampleFuncOptions().align_corners(false);
           return classify(c(F::grid_sample(k["x"], grid, options)).mean({2, 3}), k);
         };
       })},
      {"fold_and_pixel_shuffle", pictures([](Net& net) -> Forward {
         auto c = net.part("c", nn::Conv2d(3, 16, 3));
         auto p = net.part("p", nn::PixelShuffle(2));
         auto u = net.part("u", nn::Unfold(nn::UnfoldOptions({2, 2}).stride(2)));
         return [=](const Batch& k) mutable {
           const auto options = F::FoldFuncOptions({28, 28}, {2, 2}).stride(2);
           return classify(F::fold(u(p(c(k["x"]))), options).mean({2, 3}), k);
         };
       })},
      {"convolutions_of_one_and_three_dimensions", sequences([](Net& net) -> Forward {
         const auto options =
             nn::Conv1dOptions(6, 6, 3).padding(torch::kSame).padding_mode(torch::kCircular);
         auto c = net.part("c", nn::Conv1d(options));
         auto t = net.part("t", nn::ConvTranspose1d(6, 1, 1));
         auto d = net.part("d", nn::Conv3d(1, 2, 3));
         return [=](const Batch& k) mutable {
           const auto h = t(c(k["x"])).squeeze(1);
           const auto volume = k["x"].view({-1, 1, 6, 2, 4}).repeat({1, 1, 1, 2, 1});
           return mean_of(F::mse_loss(h, k["y"]) + d(volume).mean());
         };
       })},
  };
}

std::vector<Habit> losses() {
  return {
      {"triplet_cosine_and_margin_losses", vectors([](Net& net) -> Forward {
         auto a = net.linear("a");
         return [=](const Batch& k) mutable {
           const auto h = a(k["x"]);
           const auto same = torch::ones({k["x"].size(0)});
           return Losses{mean_loss(F::triplet_margin_loss(h, k["y"], h.roll(1, 0)), "triplet"),
                         mean_loss(F::cosine_embedding_loss(h, k["y"], same), "cosine"),
                         mean_loss(F::multi_margin_loss(h, k["c"]), "margin")};
         };
       })},
      {"ctc_loss", sequences([](Net& net) -> Forward {
         auto a = net.linear("a", 8, 20);
         return [=](const Batch& k) mutable {
           const auto log_p = F::log_softmax(a(k["x"]), 2).transpose(0, 1);
           const auto size = k["x"].size(0);
           return mean_of(F::ctc_loss(log_p, k["t"].slice(1, 0, 2) % 19 + 1,
                                      torch::full({size}, 6, torch::kLong),
                                      torch::full({size}, 2, torch::kLong)));
         };
       })},
      {"adaptive_softmax",
       sequences([](Net& net) -> Forward {
         const auto options = nn::AdaptiveLogSoftmaxWithLossOptions(8, 20, {5, 10}).div_value(2);
         auto a = net.part("a", nn::AdaptiveLogSoftmaxWithLoss(options));
         return [=](const Batch& k) mutable {
           return mean_of(-a->forward(k["x"].mean(1), k["t"].select(1, 0)).output.mean());
         };
       }),
       Outcome::kRefused,
       {"depends on data", "trireme::opaque"}},
      {"topk_sort_and_distances", vectors([](Net& net) -> Forward {
         auto a = net.linear("a");
         return [=](const Batch& k) mutable {
           const auto h = a(k["x"]);
           const auto top = std::get<0>(h.topk(3, 1));
           const auto least = std::get<0>(h.sort(1)).select(1, 0);
           return mean_of(torch::cdist(h, k["y"]).diagonal().mean() + top.mean() + least.mean() +
                          torch::logsumexp(h, 1).mean() +
                          torch::einsum("bi,bi->b", {h, k["y"]}).mean());
         };
       })},
      {"bilinear_and_gate", vectors([](Net& net) -> Forward {
         auto b = net.part("b", nn::Bilinear(8, 8, 16));
         auto g = net.part("g", nn::GLU());
         return [=](const Batch& k) mutable { return square_error(g(b(k["x"], k["y"])), k["y"]); };
       })},
  };
}

}  // namespace

std::vector<Habit> layer_habits() {
  std::vector<Habit> all = norms();
  for (auto& part : {spatial(), losses()}) all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace trireme::habits
