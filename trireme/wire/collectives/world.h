#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "trireme/error.h"
#include "trireme/wire/collectives/group.h"
#include "trireme/wire/endpoint/watch.h"

namespace trireme::collectives {

/// The ranks of a run, and this one among them. The endpoint outlives whoever uses it.
struct World {
  transport::Endpoint& endpoint;
  transport::WatchOptions watch;
  Costs costs = kUsualCosts;  ///< Of messages; the same on all ranks.

  int rank() const { return endpoint.rank(); }
  int size() const { return endpoint.world_size(); }
};

/// A group of all ranks for purposes of its own. name: also for messages; groups of other names may
/// be in use at the same time.
std::unique_ptr<Group> make_world_group(const World& world, const std::string& name);

/// The text of every rank, by rank. Every rank calls it; blocks. what: for messages.
std::vector<std::string> gather(const World& world, const std::string& text,
                                const std::string& what);

/// Rank 0's text, on every rank. Every rank calls it; blocks.
std::string from_first(const World& world, const std::string& text, const std::string& what);

/// Throws kInvalidArgument on every rank where one was started with another `text` than rank 0.
///
/// what   `plan`, `options`, ...: what the text is. Of several lines, the first that differs is
///        named too.
void require_same(const World& world, const std::string& text, const std::string& what);

/// Each word becomes the one that some rank of the group knows; the others have 0 there, or the
/// same. Every rank of the group calls it; blocks. Cost: that of an all_reduce of the words.
void unite(Group& group, std::span<std::uint64_t> words, const transport::WatchOptions& watch,
           const ErrorContext& place);

}  // namespace trireme::collectives
