#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "tests/engine/reference/plain_at_every_cut.h"
#include "tests/engine/reference/trial.h"
#include "trireme/model.h"

namespace trireme::reference {
namespace {

/// A module with two matrices, an embedding and a table, for functions to use as they like.
struct Parts : torch::nn::Module {
  torch::Tensor a, b, table, frozen, channels;

  Parts() {
    a = register_parameter("a", torch::randn({6, 6}));
    b = register_parameter("b", torch::randn({6, 6}));
    table = register_parameter("table", torch::randn({11, 6}));
    frozen = register_parameter("frozen", torch::randn({6}), /*requires_grad=*/false);
    channels = register_parameter(
        "channels", torch::randn({4, 3, 3, 3}).contiguous(torch::MemoryFormat::ChannelsLast));
  }
};

using Forward = torch::Tensor (*)(Parts& p, const Batch& batch);

/// What a recording has to get right. Each returns a loss; the name says what it is about.
struct Trap {
  const char* name;
  Forward forward;
};

torch::Tensor mean_square(const torch::Tensor& x) { return x.square().mean(); }

const Trap kTraps[] = {
    {"in_place_on_views",
     [](Parts& p, const Batch& batch) {
       auto x = torch::mm(batch["x"], p.a);
       x.slice(1, 0, 3).mul_(2);
       x.select(1, 4) += batch["x"].select(1, 0);
       return mean_square(torch::mm(x, p.b));
     }},
    {"view_of_memory_written_since",
     [](Parts& p, const Batch& batch) {
       auto x = torch::mm(batch["x"], p.a);
       const auto turned = x.t();
       x.add_(batch["x"]);
       const auto y = torch::tanh(x), z = torch::softmax(x, 1);
       return mean_square(torch::mm(y + z, p.b)) + mean_square(torch::sigmoid(x)) +
              mean_square(torch::tanh(turned));
     }},
    {"view_that_nobody_uses_after_a_write",
     [](Parts& p, const Batch& batch) {
       auto x = torch::mm(batch["x"], p.a);
       const auto columns = x.unbind(1);
       const auto y = torch::mm(torch::stack({columns[0], columns[2]}, 1), p.b.narrow(0, 0, 2));
       x.add_(batch["x"]);
       return mean_square(x + y);
     }},
    {"index_and_index_put",
     [](Parts& p, const Batch& batch) {
       using torch::indexing::Slice;
       auto x = torch::mm(batch["x"], p.a);
       const auto order = torch::tensor({5, 0, 3});
       auto y = x.index({Slice(), order}).clone();
       y.index_put_({Slice(), torch::tensor({1})}, 0.5);
       return mean_square(torch::cat({y, x.index({Slice(), Slice(0, 3)})}, 1));
     }},
    {"split_unbind_cat_topk_einsum",
     [](Parts& p, const Batch& batch) {
       const auto x = torch::mm(batch["x"], p.a);
       const auto parts = x.split({2, 4}, 1);
       const auto columns = parts[1].unbind(1);
       const auto top = std::get<0>(x.topk(2, 1));
       const auto y = torch::cat({parts[0], columns[3].unsqueeze(1), top}, 1);
       return mean_square(torch::einsum("bi,ij->bj", {x, p.b})) + y.abs().mean();
     }},
    {"sparse_embedding",
     [](Parts& p, const Batch& batch) {
       const auto rows = torch::embedding(p.table, batch["id"], -1, false, /*sparse=*/true);
       return mean_square(torch::mm(rows, p.a));
     }},
    {"embedding_bag",
     [](Parts& p, const Batch& batch) {
       const auto ids = torch::stack({batch["id"], (batch["id"] + 3) % 11}, 1);
       const auto rows = torch::nn::functional::embedding_bag(
           ids, p.table, torch::nn::functional::EmbeddingBagFuncOptions().mode(torch::kSum));
       return mean_square(torch::mm(rows, p.a));
     }},
    {"no_grad_inside",
     [](Parts& p, const Batch& batch) {
       auto x = torch::mm(batch["x"], p.a);
       torch::Tensor scale;
       {
         const torch::NoGradGuard no_grad;
         scale = x.abs().amax() + torch::mm(batch["x"], p.b).abs().amax();
       }
       return mean_square(torch::mm(x / scale, p.b));
     }},
    {"literals_and_wrapped_numbers",
     [](Parts& p, const Batch& batch) {
       auto x = torch::mm(batch["x"], p.a) * torch::tensor({1.0F, 2.0F, 3.0F, 1.0F, 2.0F, 3.0F});
       x = 1 - x / 3;
       x = torch::where(x > 0, x, -0.25 * x) * batch["x"].size(0);
       return x.sum() / batch["x"].size(0) + mean_square(torch::mm(x, p.b));
     }},
    {"raw_write_into_empty",
     [](Parts& p, const Batch& batch) {
       auto weights = torch::empty({6});
       for (int i = 0; i < 6; ++i)
         weights.mutable_data_ptr<float>()[i] = 0.5F * static_cast<float>(i);
       auto filled = torch::empty({6});
       filled.fill_(2).add_(p.frozen);
       return mean_square(torch::mm(batch["x"] * weights + filled, torch::mm(p.a, p.b)));
     }},
    {"written_literal",
     [](Parts& p, const Batch& batch) {
       auto sums = torch::tensor({1.0F, 2.0F});
       auto kept = sums + 1;
       sums.add_(kept);
       return mean_square(torch::mm(batch["x"], p.a)) * sums.sum();
     }},
    {"written_input",
     [](Parts& p, const Batch& batch) {
       batch["x"].mul_(0.5);
       return mean_square(torch::mm(batch["x"], p.a));
     }},
    {"autocast_region",
     [](Parts& p, const Batch& batch) {
       auto x = torch::mm(batch["x"], p.a);
       at::autocast::set_autocast_enabled(at::kCPU, true);
       x = torch::mm(x, p.b);
       at::autocast::clear_cache();
       at::autocast::set_autocast_enabled(at::kCPU, false);
       return mean_square(torch::mm(x.to(torch::kFloat), torch::ones({6, 2})));
     }},
    {"expanded_and_chunked_values",
     [](Parts& p, const Batch& batch) {
       const auto x = torch::mm(batch["x"], p.a);
       const auto wide = x.mean(1, true).expand({-1, 6});
       const auto halves = x.chunk(2, 1);
       const auto turned = torch::mm(x, p.b).t();
       return (wide * turned.t()).sum(1).mean() + (halves[0] * halves[1]).mean();
     }},
    {"skip_to_two_later_stages",
     [](Parts& p, const Batch& batch) {
       const auto x = torch::mm(batch["x"], p.a);
       auto y = torch::tanh(x);
       y = torch::mm(y, p.b) * x;
       y = torch::sigmoid(y) + x * 2;
       return (y * x).mean() + (torch::relu(y) - x).square().mean();
     }},
    {"channels_last_parameter",
     [](Parts& p, const Batch& batch) {
       const auto image = torch::cat({batch["x"], batch["x"]}, 1).view({-1, 3, 2, 2});
       const auto wide = image.repeat({1, 1, 2, 2}).contiguous(torch::MemoryFormat::ChannelsLast);
       return mean_square(torch::relu(torch::conv2d(wide, p.channels))) +
              torch::mm(batch["x"], p.a).mean();
     }},
    {"gradient_does_not_reach_every_parameter",
     [](Parts& p, const Batch& batch) {
       const auto unused = torch::mm(batch["x"], p.b);
       return mean_square(torch::mm(batch["x"] + unused.detach(), p.a));
     }},
    {"random_operators",
     [](Parts& p, const Batch& batch) {
       auto x = torch::dropout(torch::mm(batch["x"], p.a), 0.3, true);
       x = x + 0.1 * torch::randn_like(x);
       return mean_square(torch::mm(torch::bernoulli(torch::sigmoid(x)) * x, p.b));
     }},
};

models::TestModel make_trap(const Trap& trap) {
  torch::manual_seed(3);
  const auto parts = std::make_shared<Parts>();
  return {make_model(parts, [parts, forward = trap.forward](
                                const Batch& batch) { return forward(*parts, batch); }),
          [](std::int64_t size, std::uint64_t seed) {
            auto random = at::make_generator<at::CPUGeneratorImpl>(seed + 5);
            Batch batch;
            batch.set("x", torch::randn({size, 6}, random));
            batch.set("id", torch::randint(0, 11, {size}, random, torch::kLong));
            return batch;
          }};
}

class Traps : public testing::TestWithParam<Trap> {};

TEST_P(Traps, ReplayIsThePlainModelWhereverItIsCut) {
  Trial trial(make_trap(GetParam()), {.global_batch = 9, .microbatch = 3, .lanes = 1});
  expect_plain_at_every_cut(trial);
}

INSTANTIATE_TEST_SUITE_P(All, Traps, testing::ValuesIn(kTraps),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace trireme::reference
