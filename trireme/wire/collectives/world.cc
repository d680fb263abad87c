#include "trireme/wire/collectives/world.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <sstream>
#include <utility>

#include "trireme/base/random.h"
#include "trireme/error.h"

namespace trireme::collectives {
namespace {

/// Ids of groups with names, apart from those of step programs, which count from 0.
std::uint64_t id_of(const std::string& name) {
  constexpr std::uint64_t kFirst = 1U << 20;
  return kFirst + stream_seed(0, name) % kFirst;
}

/// `: 'rate 2' and not 'rate 1'`, the first line of two texts that differs; nothing where they are
/// of one line.
std::string difference(const std::string& mine, const std::string& first) {
  std::istringstream my_lines(mine), first_lines(first);
  if (first.find('\n') == std::string::npos) return "";
  std::string my_line, first_line;
  while (my_line == first_line) {
    if (!std::getline(my_lines, my_line) || !std::getline(first_lines, first_line)) return "";
  }
  return ": '" + my_line + "' and not '" + first_line + "'";
}

}  // namespace

std::unique_ptr<Group> make_world_group(const World& world, const std::string& name) {
  std::vector<int> ranks(world.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  return std::make_unique<Group>(world.endpoint, std::move(ranks),
                                 GroupOptions{.name = name,
                                              .id = id_of(name),
                                              .deadline = world.watch.deadline,
                                              .logger = world.watch.logger,
                                              .costs = world.costs});
}

std::vector<std::string> gather(const World& world, const std::string& text,
                                const std::string& what) {
  const auto group = make_world_group(world, "gather");
  const auto wait = [&](const transport::WorkPtr& work) {
    transport::await(group_work(*work, *group), world.watch,
                     {.rank = world.rank(), .operation = "gather " + what});
  };
  const auto size = static_cast<std::int64_t>(text.size());
  std::vector<std::int64_t> sizes(world.size());
  wait(group->all_gather(std::as_bytes(std::span(&size, 1)),
                         std::as_writable_bytes(std::span(sizes))));
  const auto total = std::accumulate(sizes.begin(), sizes.end(), std::int64_t{0});
  std::string all(static_cast<std::size_t>(total), ' ');
  wait(group->all_gather(std::as_bytes(std::span(text)), std::as_writable_bytes(std::span(all)),
                         sizes));
  std::vector<std::string> result;
  std::size_t begin = 0;
  for (const std::int64_t bytes : sizes) {
    result.push_back(all.substr(begin, bytes));
    begin += bytes;
  }
  return result;
}

std::string from_first(const World& world, const std::string& text, const std::string& what) {
  return gather(world, world.rank() == 0 ? text : "", what)[0];
}

void require_same(const World& world, const std::string& text, const std::string& what) {
  const std::vector<std::string> all = gather(world, text, what);
  for (std::size_t r = 1; r < all.size(); ++r) {
    if (all[r] == all[0]) continue;
    throw Error(ErrorKind::kInvalidArgument,
                "rank " + std::to_string(r) + " was started with other " + what + " than rank 0" +
                    difference(all[r], all[0]) +
                    "; start all ranks with the same command line and files");
  }
}

void unite(Group& group, std::span<std::uint64_t> words, const transport::WatchOptions& watch,
           const ErrorContext& place) {
  const Elements elements(std::as_writable_bytes(words), Dtype::kI64);
  const auto work = group.all_reduce(elements, kernels::ReduceOp::kOr);
  transport::await(group_work(*work, group), watch, place);
}

}  // namespace trireme::collectives
