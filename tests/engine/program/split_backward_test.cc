#include "trireme/engine/program/split_backward.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <map>
#include <optional>
#include <vector>

#include "tests/engine/program/weak_storage.h"

namespace trireme::program {
namespace {

class SumsBySite : public GradientSink {
 public:
  void accept(int site, const at::Tensor& gradient) override {
    gradients[site].push_back(gradient.clone());
  }
  std::map<int, std::vector<at::Tensor>> gradients;
};

/// A stage that sends three values: `chain` from what it received and parameter 0, `mixed` from both parameters, and
/// `own` from parameter 1 alone, which `mixed` is made of.
struct Shared {
  explicit Shared(SumsBySite& sink)
      : leaf(make_node<CaptureNode>()),
        x(make_stand_in(torch::full({2}, 3.0), leaf)),
        first(make_stand_in(torch::full({2}, 5.0), make_node<SiteNode>(sink, 0))),
        second(make_stand_in(torch::full({2}, 7.0), make_node<SiteNode>(sink, 1))) {
    const at::Tensor p = first * 2;
    own = second * 3;
    mixed = own * p;
    chain = x * p;
    for (const at::Tensor& sent : {chain, own, mixed}) {
      roots.push_back(torch::autograd::impl::gradient_edge(sent));
      gradients.push_back(torch::ones({2}));
    }
  }

  NodePtr leaf;
  at::Tensor x, first, second, own, mixed, chain;
  torch::autograd::edge_list roots;
  torch::autograd::variable_list gradients;
};

TEST(SplitBackward, ASiteOfSeveralValuesGetsOneSum) {
  SumsBySite whole, parts;
  const Shared one(whole);
  run_backward(one.roots, one.gradients);
  const Shared other(parts);
  WeightWork work;
  const auto received = run_input_backward(other.roots, other.gradients, {{other.leaf, 0}}, work);
  EXPECT_TRUE(parts.gradients.empty());
  run_weight_backward(std::move(work));
  EXPECT_TRUE(torch::equal(received.at(0), static_cast<CaptureNode*>(one.leaf.get())->take()));
  ASSERT_EQ(parts.gradients.size(), 2U);
  for (const auto& [site, gradients] : whole.gradients) {
    ASSERT_EQ(parts.gradients.at(site).size(), 1U) << "site " << site;
    EXPECT_TRUE(torch::equal(parts.gradients.at(site)[0], gradients.at(0))) << "site " << site;
  }
}

// h = 2 x, y = h w, z = tanh(y): the gradient of w needs h, nothing of the second part needs z.
TEST(SplitBackward, WhatNothingWaitsForIsFreedInTheFirstPart) {
  SumsBySite sink;
  const NodePtr leaf = make_node<CaptureNode>();
  std::optional<WeakStorage> of_h, of_z;
  torch::autograd::edge_list roots;
  {
    const at::Tensor x = make_stand_in(torch::ones({2, 3}), leaf);
    const at::Tensor w = make_stand_in(torch::ones({3, 4}), make_node<SiteNode>(sink, 0));
    const at::Tensor h = x * 2, z = torch::tanh(torch::mm(h, w));
    of_h = weak(h);
    of_z = weak(z);
    roots.push_back(torch::autograd::impl::gradient_edge(z.sum()));
  }
  WeightWork work;
  const auto received = run_input_backward(roots, {torch::ones({})}, {{leaf, 0}}, work);
  EXPECT_TRUE(received.at(0).defined());
  EXPECT_TRUE(of_z->expired());
  EXPECT_FALSE(of_h->expired());
  roots.clear();
  run_weight_backward(std::move(work));
  EXPECT_EQ(sink.gradients.at(0).size(), 1U);
  EXPECT_TRUE(of_h->expired());
}

// Sites stay from microbatch to microbatch, and had a hook more after each.
TEST(SplitBackward, SitesGetNoHooks) {
  SumsBySite sink;
  const NodePtr site = make_node<SiteNode>(sink, 0);
  const at::Tensor scale = make_stand_in(torch::ones({3}), site);
  for (int m = 0; m < 3; ++m) {
    const NodePtr leaf = make_node<CaptureNode>();
    const at::Tensor x = make_stand_in(torch::ones({2, 3}), leaf);
    WeightWork work;
    run_input_backward({torch::autograd::impl::gradient_edge((x * scale).sum())}, {torch::ones({})},
                       {{leaf, 0}}, work);
    run_weight_backward(std::move(work));
  }
  EXPECT_EQ(sink.gradients.at(0).size(), 3U);
  EXPECT_TRUE(site->post_hooks().empty());
}

TEST(SplitBackward, AStageThatReceivesNothingLeavesAllToTheSecondPart) {
  SumsBySite sink;
  const Shared stage(sink);
  WeightWork work;
  EXPECT_TRUE(run_input_backward(stage.roots, stage.gradients, {}, work).empty());
  EXPECT_TRUE(sink.gradients.empty());
  run_weight_backward(std::move(work));
  EXPECT_EQ(sink.gradients.size(), 2U);
}

}  // namespace
}  // namespace trireme::program
