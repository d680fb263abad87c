#pragma once

// Schedules of all ranks of a group, for tests that have them proven.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <vector>

#include "trireme/wire/collectives/schedule/algorithms.h"
#include "trireme/wire/collectives/schedule/check.h"

namespace trireme::collectives::test {

/// Of what, and by what: the ranks and sizes are filled in. By rank where those differ.
using SettingOf = std::function<CollectiveSetting(int rank)>;

inline constexpr int kMaxRanks = 17;
inline constexpr std::int64_t kCounts[] = {0, 1, 15, 16, 17, 100, 515};

inline std::vector<CollectiveSchedule> schedules_of(int num_ranks, std::int64_t count,
                                                    const SettingOf& setting_of) {
  std::vector<CollectiveSchedule> schedules;
  for (int rank = 0; rank < num_ranks; ++rank) {
    CollectiveSetting setting = setting_of(rank);
    setting.num_ranks = num_ranks;
    setting.rank = rank;
    setting.count = count;
    setting.segment = 24;
    schedules.push_back(make_schedule(setting));
  }
  return schedules;
}

inline std::vector<CollectiveSchedule> schedules_of(int num_ranks, std::int64_t count,
                                                    const CollectiveSetting& setting) {
  return schedules_of(num_ranks, count, [&](int) { return setting; });
}

inline void expect_right(const std::vector<CollectiveSchedule>& schedules,
                         const CollectiveGoal& goal) {
  EXPECT_NO_THROW(check_schedules(schedules, goal)) << schedules.size() << " ranks";
}

/// Parts of random sizes, some of them empty, some elements in none, in no order.
inline std::vector<Chunk> random_parts(int num_ranks, std::int64_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Chunk> parts(num_ranks);
  std::int64_t at = 0;
  for (int i = 0; i < num_ranks; ++i) {
    const auto gap = static_cast<std::int64_t>(random() % 3);
    const auto size = static_cast<std::int64_t>(random() % (2 * count / num_ranks + 1));
    const std::int64_t begin = std::min(count, at + gap);
    parts[(i * 5 + 3) % num_ranks].begin = begin;
    at = std::min(count, begin + size);
    parts[(i * 5 + 3) % num_ranks].end = at;
  }
  return parts;
}

}  // namespace trireme::collectives::test
