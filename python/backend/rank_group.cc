#include "python/backend/rank_group.h"

#include <cstdint>

#include "trireme/error.h"

namespace trireme::backend {
namespace {

/// FNV-1a of the name in 60 bits: all members compute the same one.
std::uint64_t id_of(const std::string& name) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char letter : name) {
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  }
  return hash >> 4;
}

}  // namespace

RankGroup::RankGroup(std::shared_ptr<World> world, std::vector<int> ranks, Options options)
    : world_(std::move(world)), ranks_(std::move(ranks)), options_(std::move(options)) {
  group_ =
      std::make_unique<collectives::Group>(world_->endpoint(), ranks_,
                                           collectives::GroupOptions{.name = options_.name,
                                                                     .id = id_of(options_.name),
                                                                     .deadline = options_.timeout,
                                                                     .costs = world_->costs()});
  group_rank_ = group_->group_rank();
  world_->enter();
}

RankGroup::~RankGroup() { close(std::chrono::milliseconds(0)); }

std::chrono::milliseconds RankGroup::timeout() const {
  const std::lock_guard lock(mutex_);
  return options_.timeout;
}

void RankGroup::set_timeout(std::chrono::milliseconds timeout) {
  const std::lock_guard lock(mutex_);
  options_.timeout = timeout;
}

void RankGroup::check_own() const {
  if (world_->is_own()) return;
  throw Error(ErrorKind::kUnavailable,
              "this process was forked from rank " + std::to_string(world_->rank()) +
                  ", whose connections it has not; call init_process_group in it, or start it "
                  "by spawn");
}

collectives::Group& RankGroup::open_group() {
  if (group_) return *group_;
  throw Error(ErrorKind::kUnavailable,
              "process group '" + options_.name + "' has been shut down on this rank");
}

std::optional<Error> RankGroup::failure() const {
  const std::lock_guard lock(mutex_);
  return group_ ? group_->failure() : std::nullopt;
}

void RankGroup::before_close(std::function<void()> call) {
  const std::lock_guard lock(mutex_);
  before_close_.push_back(std::move(call));
}

void RankGroup::abort(const std::string& reason) {
  check_own();
  const std::lock_guard lock(mutex_);
  if (group_) group_->abort(reason);
}

void RankGroup::close(std::chrono::milliseconds patience) {
  if (!world_->is_own()) {
    // Their threads are the parent's: nothing of them can be waited for.
    static_cast<void>(group_.release());
    static_cast<void>(ended_works_.release());
    return;
  }
  std::unique_ptr<collectives::Group> last;
  {
    const std::lock_guard lock(mutex_);
    last = std::move(group_);
  }
  if (!last) return;
  for (const std::function<void()>& call : before_close_) call();
  last.reset();  // without the mutex: what its works' ends lead to may call this group
  ended_works_->close();
  world_->leave(patience);
}

}  // namespace trireme::backend
