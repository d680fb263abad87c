#include "trireme/wire/collectives/device/agreement.h"

#include <algorithm>

namespace trireme::collectives {

void Agreement::look(const Description& description, double scale, Time now) {
  notes_.tell(to_bytes(description, scale));
  std::map<int, Description> heard{{members_.group_rank, description}};
  bool differs = false;
  for (int peer = 0; peer < members_.size(); ++peer) {
    if (peer == members_.group_rank) continue;
    const auto told = notes_.told_by(members_.ranks[peer]);
    if (!told || told->sequence != description.sequence) continue;
    differs = differs || *told != description;
    heard.emplace(peer, *told);
  }
  if (!differs) return;
  if (!differs_since_) differs_since_ = now;
  const bool is_over = now >= *differs_since_ + notes_.resolution();
  if (std::ssize(heard) == members_.size() || is_over) check_same(members_, heard);
}

void Agreement::retract() {
  differs_since_.reset();
  notes_.retract();
}

std::vector<int> Agreement::missing(const Description& description) const {
  std::vector<int> silent;
  std::vector<int> all;
  for (int peer = 0; peer < members_.size(); ++peer) {
    if (peer == members_.group_rank) continue;
    all.push_back(members_.ranks[peer]);
    const auto told = notes_.told_by(members_.ranks[peer]);
    if (!told || told->sequence < description.sequence) silent.push_back(members_.ranks[peer]);
  }
  std::ranges::sort(all);
  std::ranges::sort(silent);
  return silent.empty() ? all : silent;
}

}  // namespace trireme::collectives
