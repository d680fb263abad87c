#include "tests/habits/net.h"

namespace trireme::habits {
namespace {

std::vector<Habit> writes() {
  return {
      {"added_to_zeros_like", vectors([](Net& net) -> Forward {
         auto a = net.linear("a"), b = net.linear("b");
         return [=](const Batch& k) mutable {
           const auto h = a(k["x"]);
           auto s = torch::zeros_like(h);
           s.add_(h);
           return square_error(b(s), k["y"]);
         };
       })},
      {"added_to_zeros_like_of_at", vectors([](Net& net) -> Forward {
         auto a = net.linear("a"), b = net.linear("b");
         return [=](const Batch& k) mutable {
           const auto h = a(k["x"]);
           auto s = at::zeros_like(h);
           s.add_(h);
           return square_error(b(s), k["y"]);
         };
       })},
      {"column_copied_into_zeros", vectors([](Net& net) -> Forward {
         auto a = net.linear("a"), b = net.linear("b");
         return [=](const Batch& k) mutable {
           const auto h = a(k["x"]);
           auto s = torch::zeros_like(h);
           s.select(1, 0).copy_(h.select(1, 0));
           return square_error(b(s), k["y"]);
         };
       })},
      {"slice_copied_into_ones_beside_a_skip", vectors([](Net& net) -> Forward {
         auto a = net.linear("a"), b = net.linear("b");
         return [=](const Batch& k) mutable {
           const auto h = a(k["x"]);
           auto s = torch::ones_like(h);
           s.slice(1, 1, 8).copy_(h.slice(1, 0, 7));
           return square_error(b(s) * h, k["y"]);
         };
       })},
  };
}

std::vector<Habit> more_writes() {
  return {
      {"index_writes_of_all_kinds", vectors([](Net& net) -> Forward {
         using torch::indexing::Slice;
         auto a = net.linear("a");
         return [=](const Batch& k) mutable {
           const auto h = a(k["x"]);
           auto out = torch::zeros_like(h);
           out.index_put_({Slice(), Slice(0, 4)}, h.index({Slice(), Slice(4, 8)}));
           out.slice(1, 4, 8).copy_(h.slice(1, 0, 4)).mul_(2);
           out.select(1, 3) += 1;
           out.scatter_add_(1, k["c"].unsqueeze(1), h.slice(1, 0, 1));
           const auto rows = torch::zeros({k["x"].size(0)}, torch::kLong);
           return square_error(out.index_add(0, rows, h), k["y"]);
         };
       })},
      {"input_written_in_place", vectors([](Net& net) -> Forward {
         auto a = net.linear("a");
         return [=](const Batch& k) mutable {
           auto x = k["x"];
           x.mul_(2);
           return square_error(a(x), k["y"]);
         };
       })},
      {"detached_in_place", vectors([](Net& net) -> Forward {
         auto a = net.linear("a"), b = net.linear("b");
         return [=](const Batch& k) mutable {
           auto h = a(k["x"]);
           const auto kept = h * 1;
           h.detach_();
           return square_error(b(h) + kept, k["y"]);
         };
       })},
  };
}

std::vector<Habit> buffers() {
  Habit average{"moving_average", vectors([](Net& net) -> Forward {
                  auto a = net.linear("a");
                  auto average = net.state("average", torch::zeros({8}));
                  return [=, n = &net](const Batch& k) mutable {
                    const auto h = a(k["x"]);
                    const auto out = h - average;
                    if (n->is_training()) {
                      const torch::NoGradGuard no_grad;
                      average.mul_(0.9).add_(h.detach().mean(0), 0.1);
                    }
                    return square_error(out, k["y"]);
                  };
                })};
  Habit by_data{"moving_average_by_data", vectors([](Net& net) -> Forward {
                  auto a = net.linear("a");
                  auto average = net.state("average", torch::zeros({8}));
                  return [=, n = &net](const Batch& k) mutable {
                    const auto h = a(k["x"]);
                    const auto out = h - average;
                    if (n->is_training()) {
                      average.data().copy_(average * 0.9 + h.detach().mean(0) * 0.1);
                    }
                    return square_error(out, k["y"]);
                  };
                })};
  Habit spectral{"spectral_norm", vectors([](Net& net) -> Forward {
                   auto w = net.weight("w", torch::randn({8, 8}));
                   const auto unit = F::NormalizeFuncOptions().dim(0);
                   auto u = net.state("u", F::normalize(torch::randn({8}), unit));
                   return [=](const Batch& k) mutable {
                     Tensor v;
                     {
                       const torch::NoGradGuard no_grad;
                       v = F::normalize(torch::mv(w.t(), u), unit);
                       u.copy_(F::normalize(torch::mv(w, v), unit));
                     }
                     const auto sigma = torch::dot(u.clone(), torch::mv(w, v));
                     return square_error(F::linear(k["x"], w / sigma), k["y"]);
                   };
                 })};
  for (Habit* eager : {&average, &by_data, &spectral}) eager->takes_replicas = false;
  Habit replaced{"buffer_replaced_by_another_tensor",
                 vectors([](Net& net) -> Forward {
                   auto a = net.linear("a");
                   const auto center =
                       std::make_shared<Tensor>(net.state("center", torch::zeros({8})));
                   return [=](const Batch& k) mutable {
                     const auto h = a(k["x"]);
                     const auto out = h - *center;
                     *center = (*center * 0.9 + h.mean(0) * 0.1).detach();
                     return square_error(out, k["y"]);
                   };
                 }),
                 Outcome::kRefused,
                 {"aten::sub", "constant tensor", "copy_()"}};
  return {average, by_data, spectral, replaced};
}

Habit named(const std::string& habit, const std::string& module) {
  return {habit, [module] {
            const auto net = std::make_shared<Net>();
            auto a = net->linear(module);
            return Workload{
                make_model(net,
                           [a](const Batch& k) mutable { return square_error(a(k["x"]), k["y"]); }),
                source(Data::kVectors), nullptr};
          }};
}

std::vector<Habit> parameters() {
  return {
      {"weight_made_by_forward", vectors([](Net& net) -> Forward {
         auto a = net.linear("a");
         auto v = net.weight("v", torch::randn({8, 8})), g = net.weight("g", torch::ones({8, 1}));
         return [=](const Batch& k) mutable {
           a->weight = g * v / v.norm(2, 1, true);
           return square_error(a(k["x"]), k["y"]);
         };
       })},
      {"tied_embedding", sequences([](Net& net) -> Forward {
         auto table = net.part("table", nn::Embedding(20, 8));
         auto out = net.part("out", nn::Linear(nn::LinearOptions(8, 20).bias(false)));
         out->weight = table->weight;
         return [=](const Batch& k) mutable {
           const auto scores = F::linear(table(k["t"]), table->weight).view({-1, 20});
           return mean_of(F::cross_entropy(scores, k["t"].view(-1)));
         };
       })},
      {"scalar_and_empty_parameters", vectors([](Net& net) -> Forward {
         auto a = net.linear("a");
         auto scale = net.weight("scale", torch::ones({})),
              none = net.weight("none", torch::ones({0}));
         return [=](const Batch& k) mutable {
           return square_error(a(k["x"]) * scale + none.sum(), k["y"]);
         };
       })},
      {"transposed_parameter", vectors([](Net& net) -> Forward {
         auto w = net.weight("w", torch::randn({8, 8}).t());
         return [=](const Batch& k) mutable { return square_error(k["x"].matmul(w), k["y"]); };
       })},
      {"channels_last", pictures([](Net& net) -> Forward {
         auto c = net.part("c", nn::Conv2d(3, 4, 3));
         auto b = net.part("b", nn::BatchNorm2d(4));
         const auto last = torch::MemoryFormat::ChannelsLast;
         c->weight.set_data(c->weight.detach().contiguous(last));
         return [=](const Batch& k) mutable {
           return classify(b(c(k["x"].contiguous(last))).mean({2, 3}), k);
         };
       })},
      named("newline_in_a_name", "a\nb"),
      named("quotes_in_a_name", "a b/c\"d\"\xc3\xa9"),
      named("quotes_and_newline_in_a_name", "a b/c\"d\"\n\xc3\xa9"),
  };
}

}  // namespace

std::vector<Habit> memory_habits() {
  std::vector<Habit> all = writes();
  for (auto& part : {more_writes(), buffers(), parameters()})
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace trireme::habits
