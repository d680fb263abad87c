#include "trireme/engine/train/rank_stages.h"

#include <algorithm>
#include <iterator>

namespace trireme::train {

RankStages::RankStages(const record::Recording& recording, const layout::Plan& plan,
                       const std::vector<int>& stages, const program::SiteTable& sites,
                       const Options& options) {
  for (const int stage : stages) {
    held_[stage] = std::make_unique<Held>(recording, plan, stage, sites, options);
    const program::StageProgram& program = held_[stage]->program;
    for (const int loss : program.losses()) makers_[loss] = held_[stage].get();
    losses_.insert(program.losses().begin(), program.losses().end());
    weighed_.insert(program.weighed_losses().begin(), program.weighed_losses().end());
    if (!program.fields().empty()) ++num_readers_;
    for (const std::string& field : program.fields()) {
      if (std::ranges::count(fields_, field) == 0) fields_.push_back(field);
    }
  }
}

std::map<int, pipeline::StageWorker*> RankStages::workers() const {
  std::map<int, pipeline::StageWorker*> workers;
  for (const auto& [stage, held] : held_) workers[stage] = &held->worker;
  return workers;
}

double RankStages::loss_sum(int microbatch, int loss) const {
  return makers_.at(loss)->worker.loss_sums()[microbatch][loss];
}

std::vector<std::string> RankStages::take_refusals() {
  std::vector<std::string> fresh;
  for (const auto& [stage, held] : held_) {
    for (const std::string& reason : held->program.capture_report().refusals) {
      const std::string line = "stage " + std::to_string(stage) + " is not captured: " + reason;
      if (told_.insert(line).second) fresh.push_back(line);
    }
  }
  return fresh;
}

Statistics RankStages::take_statistics() {
  Statistics all;
  for (const auto& [stage, held] : held_) {
    Statistics part = held->worker.take_statistics();
    all.resize(std::max(all.size(), part.size()));
    for (std::size_t m = 0; m < part.size(); ++m) {
      std::ranges::move(part[m], std::back_inserter(all[m]));
    }
  }
  return all;
}

}  // namespace trireme::train
