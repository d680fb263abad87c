#pragma once

#include <array>
#include <chrono>
#include <coroutine>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "trireme/kernels/reduce/combine.h"
#include "trireme/wire/collectives/host/exchange.h"
#include "trireme/wire/collectives/host/routes.h"
#include "trireme/wire/collectives/members.h"

namespace trireme::collectives {

/// A rank's part in an operation: a coroutine that is suspended wherever other ranks are not there
/// yet, so that whichever thread has time can go on with it.
///
/// Caller-synchronised.
class Task {
 public:
  struct promise_type {  // NOLINT(readability-identifier-naming): the language's name
    Task get_return_object() {
      return Task(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { failure = std::current_exception(); }

    std::exception_ptr failure;
  };

  Task() = default;
  Task(Task&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Task() {
    if (handle_) handle_.destroy();
  }

  bool is_done() const { return handle_.done(); }

  /// Goes on to where it waits next, or to its end. Throws what ended it.
  void resume() {
    handle_.resume();
    if (handle_.promise().failure) std::rethrow_exception(handle_.promise().failure);
  }

 private:
  explicit Task(std::coroutine_handle<promise_type> handle) : handle_(handle) {}

  std::coroutine_handle<promise_type> handle_;
};

/// One rank's part in the operations of a group whose ranks share an arena. Nothing is sent: a rank
/// writes to its part of the arena, says so by its progress, and reads the others'. All ranks go
/// through the same steps; a step is over when every rank's progress has reached its number.
///
/// Caller-synchronised.
class HostRank {
 public:
  /// members   outlives it.
  HostRank(const Members& members, Arena arena, transport::Patience patience);

  void set_patience(const transport::Patience& patience) { patience_ = patience; }

  int rank() const { return view_.rank; }
  int size() const { return view_.size(); }
  std::int64_t sequence() const { return sequence_; }  ///< Operations before the next one.
  Registry& registry() { return registry_; }

  /// The next operation, in two halves. The first does what the others wait for and waits for
  /// nobody.
  ///
  /// request   the same in both; its memory is lent until the second half has ended.
  void begin(const Request& request);

  // The second half: at once, where all ranks are as quick and there is little to do; else step by
  // step. Between two calls of `resume`, all ranks must have arrived.
  //
  // Errors (of resume)   kInvalidArgument, with the same text on all ranks, where they call
  //                      different operations.
  bool has_met_quickly();  ///< Whether all are there, in the same operation: within its patience.
  bool end_now(const Request& request);  ///< After that. Whether the operation has ended.
  Task finish(Request request);

  /// Whether every rank has done the step that this rank is at, within `time`.
  bool wait_for_all(std::chrono::microseconds time);
  bool has_all() const;

  /// The one that the last `wait_for_all` was still waiting for when the others had done it.
  int last_waited() const { return last_waited_; }

  /// Group ranks that have not.
  std::vector<int> late() const;

  /// Whether the others wait, now or later, for more of what this rank does in its operation.
  bool owes_steps() const { return owes_steps_; }

 private:
  struct Meet;

  /// Where a rank's memory of an operation is to be found.
  struct Whereabouts {
    Location shared;
    std::uint64_t address = 0;  ///< In its process, which the others may read while it is lent.
    bool is_lent = false;

    bool is_private() const { return !shared.is_shared() && !is_lent; }
  };

  void say(const Request& request);
  void say_place(const Whereabouts& place);
  Whereabouts said_place(int rank) const;
  bool is_same() const;
  void compare() const;
  std::vector<std::span<std::byte>> shared_memory(const Exchange& exchange) const;
  Whereabouts find(const Exchange& exchange) const;
  std::vector<std::uint64_t> lent_addresses() const;
  void copy_own(std::span<const std::byte> own, std::span<const Exchange::Move> moves) const;
  std::byte& is_read(int rank) const { return view_.arena.payload(rank, turn()).front(); }
  bool all_have_read() const;
  void begin_small(const Request& request);
  void end_small(const Request& request);
  void begin_exchange(const Request& request);
  Task finish_small(Request request);
  Task finish_exchange(std::unique_ptr<Exchange> exchange);
  bool stages_first(const Exchange& exchange) const;
  bool all_stage_first(const Exchange& exchange) const;
  std::unique_ptr<Exchange> make_exchange(const Request& request) const;
  int turn() const { return static_cast<int>(sequence_ % 2); }
  int next_half() const { return static_cast<int>(num_pieces_ % 2); }
  Meet meet();
  Meet others();
  void arrive() { view_.arena.progress(rank()).set(++steps_); }

  const Members& members_;
  ArenaView view_;
  transport::Patience patience_;
  Registry registry_;
  LentMemory lent_;

  /// What decides how the operation stages.
  struct Staging {
    std::optional<std::size_t> kind;  ///< Index of its way; none: always cached.
    std::size_t bytes = 0;            ///< Of the operation, or of a piece.
    std::array<std::chrono::nanoseconds, 2> staged_in{};  ///< By half.
    std::chrono::nanoseconds taken_in{};                  ///< Of the piece: combined too.
  };

  void end_operation();
  void stage(Exchange& exchange, std::int64_t piece);
  void end_piece(int half);
  template <typename Part>
  std::chrono::nanoseconds timed(Part part) const;

  Staging staging_;
  std::vector<Chooser<Way>> choosers_;  ///< By kind; on the first rank.
  Routes routes_;
  std::unique_ptr<Exchange> begun_;  ///< Of the operation that has begun; none where it is small.
  bool owes_steps_ = false;
  int last_waited_ = -1;
  std::uint32_t steps_ = 0;      ///< That this rank has done.
  std::int64_t sequence_ = 0;    ///< Operations before this one.
  std::int64_t num_pieces_ = 0;  ///< Staged and taken, in all operations: which half comes next.
};

}  // namespace trireme::collectives
