#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "trireme/plan/partition/candidate.h"
#include "trireme/plan/partition/search.h"
#include "trireme/plan/partition/stage_bound.h"
#include "trireme/plan/partition/stage_moves.h"

namespace trireme::partition {

/// Numbers from `most` down to 1: up to 8 each of them, above those that are far apart. Ranks that are tried.
std::vector<int> numbers_down_from(int most);

/// The best over schedules, orders of nodes, groups of copied nodes, orders of the ranks and, where ranks may stay idle, numbers of
/// stages.
///
/// Each number of stages is searched by itself, as if there were no other. So a problem with one rank more, and the same
/// first ranks, finds all that this one does; but for large numbers of stages that a first look finds far from the best.
class Planner {
 public:
  /// problem   with the most stages that a plan may have; must outlive this.
  explicit Planner(const Problem& problem);

  /// For the objective of the problem's options. Errors kInvalidArgument where the graph has too few cuts, or no schedule
  /// does with as few active microbatches as there may be.
  void plan();

  /// A plan, and the problem of its number of stages.
  struct Proposal {
    const Problem& problem;
    Candidate candidate;
  };

  /// The best plan that was found, first, and those of other numbers of stages that are nearly as good. Where stages may
  /// recompute or offload, and the memory is tight, of each number of stages and schedule the best; else, where none fits,
  /// of each number of stages. Less effort has one schedule for each.
  std::vector<Proposal> proposals() const;

  /// What `plan` was after in the end.
  const Goal& goal() const { return goal_; }

 private:
  struct Best {
    int num_stages = 0;
    std::size_t setting = 0;
    std::size_t order = 0;  ///< Of the ranks, in `orders`.
    Search::Found found;
  };

  using Bests = std::map<std::pair<int, std::string>, Best>;  ///< By number of stages and schedule.

  [[noreturn]] void fail_without_plans() const;
  void search(int num_stages);
  void search_fewer_stages();
  bool search_near(int num_stages);
  bool may_win(int num_stages) const;
  bool may_win(const Best& tried) const;
  bool looks_good(int num_stages);
  void try_node_orders(int num_stages);
  bool try_stage_moves(int num_stages, PromisingWays& promising);
  void try_copies(int num_stages);
  void try_setting(int num_stages, std::size_t setting);
  bool has_schedule(int num_stages, const std::string& schedule);
  void try_order(const Best& tried);
  void keep(Bests& bests, const Best& found) const;
  Search& search_of(const Best& tried);
  const std::vector<std::vector<int>>& orders(int num_stages);
  /// What is done to the recorded graph before it is cut.
  struct Passes {
    std::vector<graph::NodeId> node_order;
    std::vector<graph::NodeId> copied;
    bool operator==(const Passes&) const = default;
  };

  /// The settings of one such graph share it.
  struct PassedGraph {
    Passes passes;
    graph::Graph graph;
  };

  std::size_t setting(const std::string& schedule, const Passes& passes);
  const graph::Graph& graph_after(const Passes& passes);
  const Problem& problem(const Best& best) const;
  Proposal proposal(const Best& best) const;
  const Best* best() const;
  const Best* best_of(int num_stages) const;

  const Problem& problem_;
  std::vector<std::string> schedules_;
  bool splits_backwards_ = false;                   ///< Some schedule.
  std::vector<std::vector<graph::NodeId>> copies_;  ///< Groups that may pay.
  StageBound bound_;                                ///< Of the recorded order.
  bool reorders_ = false;                           ///< Other orders are tried.
  Goal goal_;
  std::vector<std::unique_ptr<PassedGraph>> graphs_;  ///< But for the recorded one.
  std::vector<std::unique_ptr<Setting>> settings_;
  std::map<int, std::vector<std::vector<int>>> orders_;  ///< By number of stages.
  /// By position of each stage and which order.
  mutable std::map<std::pair<std::vector<int>, std::size_t>, Problem> problems_;
  /// By number of stages, setting, order.
  std::map<std::tuple<int, std::size_t, std::size_t>, std::unique_ptr<Search>> searches_;
  Bests bests_;
  Bests firsts_;         ///< Likewise, of ranks in the first order.
  std::string refusal_;  ///< Of the last schedule that holds too many microbatches.
};

}  // namespace trireme::partition
