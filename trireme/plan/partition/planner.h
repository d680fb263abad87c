#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "trireme/plan/partition/candidate.h"
#include "trireme/plan/partition/search.h"

namespace trireme::partition {

/// Numbers from `most` down to 1: up to 8 each of them, above those that are far apart. Ranks or stages that are tried.
std::vector<int> numbers_down_from(int most);

/// The best over schedules, groups of copied nodes and, where ranks may stay idle, numbers of
/// stages.
class Planner {
 public:
  /// problem   with the most stages that a plan may have; must outlive this.
  explicit Planner(const Problem& problem);

  /// For the objective of the problem's options. May exceed memory: its score says so.
  void plan();

  /// What was found. `plan` found something: graphs with too few cuts do not come here.
  const Problem& problem() const;
  Candidate candidate() const;

 private:
  struct Best {
    int num_stages = 0;
    std::size_t setting = 0;
    Search::Found found;
  };

  [[noreturn]] void fail_without_cuts() const;
  void search(const Goal& goal);
  void try_fewer_stages();
  void try_copies(const Goal& goal);
  void try_setting(int num_stages, std::size_t setting, const Goal& goal);
  std::size_t setting(const std::string& schedule, std::vector<graph::NodeId> copied);
  const Problem& problem(int num_stages, const std::string& schedule);
  double least_us(int num_stages) const;

  const Problem& problem_;
  std::vector<std::string> schedules_;
  double work_us_ = 0;  ///< Of a microbatch.
  std::vector<std::unique_ptr<Setting>> settings_;
  std::map<std::vector<int>, Problem> problems_;  ///< By position of each stage.
  std::map<std::pair<int, std::size_t>, std::unique_ptr<Search>> searches_;
  std::optional<Best> best_;
};

}  // namespace trireme::partition
