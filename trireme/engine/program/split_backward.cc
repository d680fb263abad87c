#include "trireme/engine/program/split_backward.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace trireme::program {
namespace {

using torch::autograd::Edge, torch::autograd::edge_list, torch::autograd::Node;
using torch::autograd::variable_list;

/// Functions that compute the gradients of a value and of a parameter apart from each other, each at the cost of a
/// forward. Others (norms) would compute both twice.
constexpr std::array kApart = {"AddmmBackward",   "MmBackward",          "BmmBackward",
                               "BaddbmmBackward", "ConvolutionBackward", "AddmvBackward",
                               "MvBackward",      "LinearBackward"};

bool computes_apart(const Node& function) {
  const std::string name = function.name();
  return std::any_of(kApart.begin(), kApart.end(),
                     [&](const char* known) { return name.starts_with(known); });
}

/// The functions of a backward by where they lead.
class Walk {
 public:
  Walk(const edge_list& roots, const edge_list& leaves) {
    for (const Edge& leaf : leaves) leads_[leaf.function.get()] = {.to_leaf = true, .sites = {}};
    for (const Edge& root : roots) visit(root.function);
  }

  bool leads_to_leaf(const NodePtr& function) const { return leads_.at(function.get()).to_leaf; }

  /// The sites that `function` leads to by functions that lead to no leaf.
  std::set<int> sites_beside(const NodePtr& function) const {
    std::set<int> sites;
    for (const Edge& next : function->next_edges()) {
      if (!next.is_valid() || leads_to_leaf(next.function)) continue;
      const std::set<int>& more = leads_.at(next.function.get()).sites;
      sites.insert(more.begin(), more.end());
    }
    return sites;
  }

  /// Those that `function`, which leads to no leaf, leads to.
  const std::set<int>& sites_of(const NodePtr& function) const {
    return leads_.at(function.get()).sites;
  }

  /// Functions that lead to a leaf; each after those that it leads to.
  const std::vector<NodePtr>& chain() const { return chain_; }
  /// Other functions.
  const std::vector<NodePtr>& others() const { return others_; }
  const NodePtr& site_node(int site) const { return site_nodes_.at(site); }

 private:
  struct Leads {
    bool to_leaf = false;
    std::set<int> sites;  ///< Of a function that leads to no leaf.
  };

  /// Depth first, without recursion: graphs are as deep as models.
  void visit(const NodePtr& first) {
    std::vector<std::pair<NodePtr, std::size_t>> path;
    const auto enter = [&](const NodePtr& function) {
      if (!function || !entered_.insert(function.get()).second) return;
      path.emplace_back(function, 0);
    };
    enter(first);
    while (!path.empty()) {
      const NodePtr function = path.back().first;
      const edge_list& next = function->next_edges();
      if (path.back().second < next.size()) {
        enter(next[path.back().second++].function);
        continue;
      }
      leave(function);
      path.pop_back();
    }
  }

  /// All that follows it is known.
  void leave(const NodePtr& function) {
    Leads& leads = leads_[function.get()];
    if (const auto* site = dynamic_cast<SiteNode*>(function.get())) {
      leads.sites.insert(site->site());
      site_nodes_[site->site()] = function;
    }
    for (const Edge& next : function->next_edges()) {
      if (next.is_valid() && leads_.at(next.function.get()).to_leaf) leads.to_leaf = true;
    }
    if (leads.to_leaf) {
      chain_.push_back(function);
      return;
    }
    others_.push_back(function);
    for (const Edge& next : function->next_edges()) {
      if (!next.is_valid()) continue;
      const std::set<int>& more = leads_.at(next.function.get()).sites;
      leads.sites.insert(more.begin(), more.end());
    }
  }

  std::unordered_set<Node*> entered_;
  std::unordered_map<Node*, Leads> leads_;
  std::vector<NodePtr> chain_, others_;
  std::map<int, NodePtr> site_nodes_;
};

/// What is asked of the part that runs first, and what becomes of each answer.
struct Split {
  edge_list outputs;               ///< Leaves first.
  std::vector<NodePtr> functions;  ///< That wait; the gradients of their results are outputs.
  std::vector<NodePtr> sites;      ///< Whose gradients are outputs.
};

/// Which roots run first: those that lead to a leaf, and those that share a site with what follows from them, since a
/// site's gradient is the sum of one backward.
std::vector<bool> first_roots(const Walk& walk, const edge_list& roots) {
  std::set<int> shared;
  for (const NodePtr& function : walk.chain()) {
    const std::set<int> sites = walk.sites_beside(function);
    shared.insert(sites.begin(), sites.end());
  }
  std::vector<bool> is_first(roots.size());
  // A root that runs first brings its sites along, which others may share.
  for (bool grows = true; grows;) {
    grows = false;
    for (std::size_t i = 0; i < roots.size(); ++i) {
      if (is_first[i]) continue;
      const std::set<int>& sites = walk.sites_of(roots[i].function);
      is_first[i] =
          walk.leads_to_leaf(roots[i].function) ||
          std::any_of(sites.begin(), sites.end(), [&](int site) { return shared.contains(site); });
      if (!is_first[i]) continue;
      shared.insert(sites.begin(), sites.end());
      grows = true;
    }
  }
  return is_first;
}

/// roots   those that run first.
Split split_of(const Walk& walk, const edge_list& roots, const edge_list& leaves) {
  Split split{.outputs = leaves, .functions = {}, .sites = {}};
  std::map<int, int> uses;
  std::set<int> now;
  for (const Edge& root : roots) {
    if (walk.leads_to_leaf(root.function)) continue;
    now.insert(walk.sites_of(root.function).begin(), walk.sites_of(root.function).end());
  }
  for (const NodePtr& function : walk.chain()) {
    for (const int site : walk.sites_beside(function)) ++uses[site];
  }
  // Last functions first, as a backward comes to them: so buckets fill.
  for (auto at = walk.chain().rbegin(); at != walk.chain().rend(); ++at) {
    const NodePtr& function = *at;
    const std::set<int> sites = walk.sites_beside(function);
    const bool waits = !sites.empty() && computes_apart(*function) &&
                       std::all_of(sites.begin(), sites.end(), [&](int site) {
                         return uses[site] == 1 && !now.contains(site);
                       });
    if (!waits) {
      now.insert(sites.begin(), sites.end());
      continue;
    }
    split.functions.push_back(function);
    for (std::uint32_t i = 0; i < function->num_inputs(); ++i) {
      split.outputs.emplace_back(function, i);
    }
  }
  for (const int site : now) {
    split.sites.push_back(walk.site_node(site));
    split.outputs.emplace_back(split.sites.back(), 0);
  }
  return split;
}

/// What the waiting functions and sites got, which follows the leaves in `found`.
void keep_work(const Walk& walk, const Split& split, std::size_t num_leaves, variable_list& found,
               WeightWork& work) {
  std::size_t next = num_leaves;
  for (const NodePtr& function : split.functions) {
    WeightWork::Function waiting{.roots = {}, .gradients = {}, .sites = {}};
    for (std::uint32_t i = 0; i < function->num_inputs(); ++i, ++next) {
      if (!found[next].defined()) continue;
      waiting.roots.emplace_back(function, i);
      waiting.gradients.push_back(std::move(found[next]));
    }
    for (const int site : walk.sites_beside(function)) {
      waiting.sites.emplace_back(walk.site_node(site), 0);
    }
    if (!waiting.roots.empty()) work.functions.push_back(std::move(waiting));
  }
  for (const NodePtr& site : split.sites) work.sites.push_back({site, std::move(found[next++])});
}

/// Lets a function go of what it saved as soon as it has run.
class Release : public torch::autograd::FunctionPostHook {
 public:
  explicit Release(Node& function) : function_(function) {}
  variable_list operator()(const variable_list& outputs, const variable_list& /*inputs*/) override {
    function_.release_variables();
    return outputs;
  }

 private:
  Node& function_;  ///< That has this hook.
};

/// Of the functions that run in the first part, those that do not in the second.
void release_early(const Walk& walk, const Split& split) {
  const std::unordered_set<NodePtr> waiting(split.functions.begin(), split.functions.end());
  std::set<int> now;
  for (const NodePtr& site : split.sites) now.insert(static_cast<SiteNode&>(*site).site());
  const auto release = [](const NodePtr& function) {
    function->add_post_hook(std::make_unique<Release>(*function));
  };
  for (const NodePtr& function : walk.chain()) {
    if (!waiting.contains(function)) release(function);
  }
  for (const NodePtr& function : walk.others()) {
    // A site saves nothing, and stays from microbatch to microbatch with every hook that it is given.
    if (dynamic_cast<SiteNode*>(function.get()) != nullptr) continue;
    const std::set<int>& sites = walk.sites_of(function);
    const bool runs_now =
        !sites.empty() && std::ranges::all_of(sites, [&](int site) { return now.contains(site); });
    if (runs_now) release(function);
  }
}

void give(const NodePtr& site, at::Tensor gradient) {
  static_cast<SiteNode*>(site.get())->apply({std::move(gradient)});
}

}  // namespace

variable_list run_input_backward(const edge_list& roots, const variable_list& gradients,
                                 const edge_list& leaves, WeightWork& work) {
  if (leaves.empty()) {  // a first stage: nobody waits for it
    work.roots = roots;
    work.gradients = gradients;
    return {};
  }
  const Walk walk(roots, leaves);
  const std::vector<bool> is_first = first_roots(walk, roots);
  edge_list first;
  variable_list first_gradients;
  for (std::size_t i = 0; i < roots.size(); ++i) {
    (is_first[i] ? first : work.roots).push_back(roots[i]);
    (is_first[i] ? first_gradients : work.gradients).push_back(gradients[i]);
  }
  if (first.empty()) return variable_list(leaves.size());
  const Split split = split_of(walk, first, leaves);
  release_early(walk, split);
  variable_list found = run_backward_to(split.outputs, first, first_gradients, Saved::kKept);
  keep_work(walk, split, leaves.size(), found, work);
  found.resize(leaves.size());
  return found;
}

void run_weight_backward(WeightWork work) {
  for (WeightWork::Site& site : work.sites) give(site.node, std::move(site.gradient));
  for (WeightWork::Function& waiting : work.functions) {
    variable_list found =
        run_backward_to(waiting.sites, waiting.roots, waiting.gradients, Saved::kFreed);
    for (std::size_t i = 0; i < found.size(); ++i) {
      give(waiting.sites[i].function, std::move(found[i]));
    }
    waiting = {};
  }
  if (!work.roots.empty()) run_backward(work.roots, work.gradients);
}

}  // namespace trireme::program
