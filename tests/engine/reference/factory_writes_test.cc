#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/engine/reference/plain_at_every_cut.h"
#include "tests/engine/reference/trial.h"
#include "trireme/error.h"
#include "trireme/model.h"

// `torch::zeros_like` and the other factories of torch:: hand out a shallow copy of the tensor that
// the dispatcher made: what is written to the copy in place gives a gradient to the copy alone.

namespace trireme::reference {
namespace {

using torch::Tensor;
using torch::indexing::Slice;

struct Two : torch::nn::Module {
  torch::nn::Linear a{8, 8}, b{8, 8};
  Two() {
    register_module("a", a);
    register_module("b", b);
  }
};

/// Writes something made of `h` into a tensor that a factory made, and returns that.
struct Write {
  const char* name;
  Tensor (*into_factory)(const Tensor& h);
};

const Write kWrites[] = {
    {"add_to_zeros_like",
     [](const Tensor& h) {
       auto s = torch::zeros_like(h);
       s.add_(h);
       return s;
     }},
    {"plus_equals_on_ones",
     [](const Tensor& h) {
       auto s = torch::ones({h.size(0), 8});
       s += h;
       return s;
     }},
    {"copy_to_empty",
     [](const Tensor& h) {
       auto s = torch::empty({h.size(0), 8});
       s.copy_(h);
       return s;
     }},
    {"copy_to_a_column",
     [](const Tensor& h) {
       auto s = torch::zeros_like(h);
       s.select(1, 0).copy_(h.select(1, 0));
       return s;
     }},
    {"copy_to_a_slice_of_ones",
     [](const Tensor& h) {
       auto s = torch::ones_like(h);
       s.slice(1, 1, 8).copy_(h.slice(1, 0, 7));
       return s;
     }},
    {"write_through_a_view_of_a_view",
     [](const Tensor& h) {
       auto s = torch::full({2, h.size(0), 8}, 0.5);
       s[1].slice(1, 2, 5).mul_(h.slice(1, 0, 3));
       return s.sum(0);
     }},
    {"view_taken_before_the_write",
     [](const Tensor& h) {
       auto s = torch::zeros_like(h);
       const auto left = s.slice(1, 0, 4);
       s.add_(h);
       return torch::cat({left, left * 2}, 1);
     }},
    {"detached_before_the_write",
     [](const Tensor& h) {
       auto s = torch::zeros_like(h);
       const auto kept = s.detach();
       s.add_(h);
       return s * kept;
     }},
    {"index_put",
     [](const Tensor& h) {
       auto s = torch::randn({h.size(0), 8});
       s.index_put_({Slice(), Slice(0, 4)}, h.index({Slice(), Slice(4, 8)}));
       s.index_put_({Slice(), torch::tensor({6, 7})}, h.slice(1, 0, 2));
       return s;
     }},
    {"masked_fill_then_masked_scatter_by_lerp",
     [](const Tensor& h) {
       auto s = torch::zeros_like(h);
       s.masked_fill_(h.detach() > 0, 2.0).lerp_(h, 0.25);
       return s;
     }},
    {"scatter_and_index_add",
     [](const Tensor& h) {
       auto s = torch::arange(8, torch::kFloat).repeat({h.size(0), 1});
       auto t = torch::zeros({h.size(0), 8});
       t.scatter_(1, torch::zeros({h.size(0), 1}, torch::kLong), h.slice(1, 0, 1));
       t.index_add_(1, torch::tensor({3}), h.slice(1, 1, 2));
       return s + t;
     }},
    {"copy_through_the_diagonal",
     [](const Tensor& h) {
       auto s = torch::eye(8).repeat({h.size(0), 1, 1});
       s.diagonal(0, 1, 2).copy_(h);
       return s.sum(1);
     }},
    {"written_then_transposed_in_place",
     [](const Tensor& h) {
       auto s = torch::zeros({8, h.size(0)});
       s.t_();
       s.add_(h);
       return s;
     }},
    {"unsqueezed_in_place",
     [](const Tensor& h) {
       auto s = torch::zeros_like(h);
       s.unsqueeze_(1);
       s.add_(h.unsqueeze(1));
       return s.squeeze(1);
     }},
    {"random_then_written",
     [](const Tensor& h) {
       auto s = torch::empty({h.size(0), 8}).normal_(0, 0.1);
       s.mul_(h).add_(torch::rand({8}));
       return s;
     }},
    {"written_without_a_gradient_first",
     [](const Tensor& h) {
       auto s = torch::zeros_like(h);
       {
         const torch::NoGradGuard no_grad;
         s.add_(h);
       }
       const auto constant = s * 1;
       s.addcmul_(h, h, 0.5);
       return s + constant;
     }},
};

models::TestModel model_of(std::function<Tensor(const Tensor&)> change) {
  torch::manual_seed(4);
  const auto two = std::make_shared<Two>();
  return {make_model(two,
                     [two, change](const Batch& batch) {
                       const auto h = two->a(batch["x"]);
                       return torch::mse_loss(two->b(change(h)) + 0.25 * h, batch["y"]);
                     }),
          [](std::int64_t size, std::uint64_t seed) {
            auto random = at::make_generator<at::CPUGeneratorImpl>(seed + 5);
            Batch batch;
            batch.set("x", torch::randn({size, 8}, random));
            batch.set("y", torch::randn({size, 8}, random));
            return batch;
          }};
}

class FactoryWrites : public testing::TestWithParam<Write> {};

TEST_P(FactoryWrites, KeepTheirGradientAtEveryCut) {
  Trial trial(model_of(GetParam().into_factory), {.global_batch = 6, .microbatch = 3, .lanes = 1});
  expect_plain_at_every_cut(trial);
}

INSTANTIATE_TEST_SUITE_P(All, FactoryWrites, testing::ValuesIn(kWrites),
                         [](const auto& info) { return info.param.name; });

std::string refusal(const std::function<Tensor(const Tensor&)>& change) {
  const models::TestModel test = model_of(change);
  try {
    record::record(test.model, test.make_batch, graph::Mode::kTrain);
  } catch (const Error& error) {
    return error.message();
  }
  return "was recorded";
}

TEST(SecondObjects, OfAWrittenTensorAreRefused) {
  EXPECT_THAT(refusal([](const Tensor& h) {
                auto s = torch::zeros_like(h);
                s.add_(h);
                return s * s.data();
              }),
              testing::HasSubstr("shares memory"));
  EXPECT_THAT(refusal([](const Tensor& h) {
                auto s = torch::zeros_like(h);
                const auto data = s.data();
                const auto before = data * 2;
                s.add_(h);
                return s * data + before;
              }),
              testing::HasSubstr("shares memory"));
  EXPECT_THAT(refusal([](const Tensor& h) {
                auto s = torch::zeros_like(h);
                const auto view = s.slice(1, 0, 4);
                s.data().slice(1, 0, 2).add_(h.slice(1, 0, 2));
                return h * view.sum();
              }),
              testing::HasSubstr("shares memory"));
  EXPECT_THAT(refusal([](const Tensor& h) {
                auto s = torch::zeros_like(h);
                s.data().t_().add_(1);
                return s + h;
              }),
              testing::HasSubstr("shares memory"));
}

}  // namespace
}  // namespace trireme::reference
