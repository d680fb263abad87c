#include "trireme/launch/launcher.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <exception>

#include "trireme/error.h"
#include "trireme/launch/orphans.h"
#include "trireme/launch/rank_outputs.h"
#include "trireme/launch/rank_process.h"
#include "trireme/launch/signals.h"
#include "trireme/wire/bootstrap/store.h"
#include "trireme/wire/system/poller.h"

namespace trireme::launch {
namespace {

using Clock = std::chrono::steady_clock;
using transport::Deadline;
using transport::Poller;

constexpr int kMaxRanks = 4096;
constexpr std::chrono::milliseconds kLook{500};          // for orphans that have ended
constexpr std::chrono::milliseconds kUnkillable{5'000};  // after SIGKILL: the system holds it

/// Ids of the poller: the signals, and the ends of ranks.
constexpr std::uint64_t kSignals = 0;
constexpr std::uint64_t id_of_end(int rank) { return static_cast<std::uint64_t>(rank) + 1; }

class Launcher {
 public:
  explicit Launcher(const LaunchOptions& options)
      : options_(options), orphans_(options.adopts_orphans) {
    running_.reserve(static_cast<std::size_t>(options.num_ranks));
    poller_.add(signals_.descriptor(), kSignals);
  }

  /// Ranks that are left, by an exception, do not survive.
  ~Launcher() { signal_all(SIGKILL), wait_for_killed(); }

  LaunchResult run() {
    for (int rank = 0; rank < options_.num_ranks; ++rank) start(rank);
    while (!running_.empty()) {
      serve(std::min(next_step_at_.value_or(Deadline::max()), Clock::now() + kLook));
      if (next_step_at_ && Clock::now() >= *next_step_at_) take_next_step();
      if (result_.exit_code != 0 && are_all_stopped()) signal_all(SIGKILL);
      orphans_.reap(running_);
    }
    orphans_.end_all();
    outputs_.finish();
    while (!have_outputs_ended_) serve(Clock::now() + kLook);
    return result_;
  }

 private:
  void start(int rank) {
    const transport::Address store = store_.address();
    std::vector<std::string> own = {
        "TRIREME_RANK=" + std::to_string(rank),
        "TRIREME_WORLD_SIZE=" + std::to_string(options_.num_ranks),
        "TRIREME_STORE_HOST=" + store.host, "TRIREME_STORE_PORT=" + std::to_string(store.port),
        "TRIREME_LAUNCHER_PID=" + std::to_string(::getpid()),
        // As programs for other launchers know them.
        "RANK=" + std::to_string(rank), "WORLD_SIZE=" + std::to_string(options_.num_ranks),
        "LOCAL_RANK=" + std::to_string(rank),
        "LOCAL_WORLD_SIZE=" + std::to_string(options_.num_ranks)};
    own.push_back(options_.token_file.empty() ? "TRIREME_TOKEN=" + secret_
                                              : "TRIREME_TOKEN_FILE=" + options_.token_file);
    // At once among those that are ended, whatever fails from here on.
    running_.push_back(start_process(
        rank, {.program = options_.program,
               .words = options_.words,
               .variables = environment_with(own, {"TRIREME_TOKEN", "TRIREME_TOKEN_FILE"}),
               .captures_output = options_.prefixes_lines}));
    RankProcess& process = running_.back();
    poller_.add(process.ended, id_of_end(rank));
    if (options_.prefixes_lines) {
      outputs_.add(rank, std::move(process.output), std::move(process.errors));
    }
  }

  void serve(Deadline until) {
    std::vector<int> ended;
    for (const Poller::Event& event : poller_.wait(until)) {
      if (event.id == kSignals) {
        forward(signals_.take());
      } else {
        ended.push_back(static_cast<int>(event.id - 1));
      }
    }
    take_ends(ended);
  }

  void take_ends(const std::vector<int>& ranks) {
    std::vector<ProcessEnd> ends;
    for (const int rank : ranks) {
      const auto found = std::find_if(running_.begin(), running_.end(),
                                      [rank](const auto& entry) { return entry.rank == rank; });
      ends.push_back(take_end(*found));
      outputs_.drain(rank);
      running_.erase(found);
    }
    // The others may have failed only because they lost those.
    std::stable_partition(ends.begin(), ends.end(),
                          [](const ProcessEnd& end) { return end.signal.has_value(); });
    for (const ProcessEnd& end : ends) judge(end);
  }

  void judge(const ProcessEnd& end) {
    // The store knows who has said goodbye.
    store_.mark_lost(end.rank, end.text() + (end.code == 0 ? " before its goodbye" : ""));
    if (end.code == 0 || result_.exit_code != 0) return;
    result_ = {.exit_code = end.code, .signal = end.signal};
    if (end.signal && passed_on_ != 0) {
      // Whoever was killed for it in the end.
      result_ = {.exit_code = 128 + passed_on_, .signal = passed_on_, .was_passed_on = true};
      outputs_.say("trireme: ended by signal " + std::to_string(passed_on_) + " (" +
                   strsignal(passed_on_) + ")");
    } else if (end.code != options_.explained_code) {
      outputs_.say("trireme: rank " + std::to_string(end.rank) + " failed: " + end.text());
    }
    end_with(SIGTERM, options_.grace);
  }

  /// Those that are stopped hear no signal but one.
  bool are_all_stopped() const { return std::ranges::all_of(running_, is_stopped); }

  void forward(const std::vector<int>& signals) {
    for (const int signal : signals) {
      signal_all(signal);
      if (signal == SIGUSR1 || signal == SIGUSR2) continue;
      if (passed_on_ == 0) passed_on_ = signal;
      end_with(SIGKILL, options_.signal_grace);
      outputs_.hurry();
    }
  }

  void end_outputs(const std::exception_ptr& failure) {
    if (failure && result_.exit_code == 0) std::rethrow_exception(failure);
    have_outputs_ended_ = true;
  }

  /// What is sent to those that still run, and when; of several decisions the earliest.
  void end_with(int signal, std::chrono::milliseconds after) {
    const Deadline at = Clock::now() + after;
    if (next_step_at_ && *next_step_at_ <= at) return;
    next_signal_ = signal;
    next_step_at_ = at;
  }

  void take_next_step() {
    if (next_signal_ == 0) {
      throw Error(ErrorKind::kTimeout,
                  "rank " + std::to_string(running_.front().rank) + " does not end after SIGKILL");
    }
    signal_all(next_signal_);
    const bool was_kill = next_signal_ == SIGKILL;
    next_signal_ = was_kill ? 0 : SIGKILL;
    next_step_at_ = Clock::now() + (was_kill ? kUnkillable : options_.kill_after);
  }

  void signal_all(int signal) const {
    for (const RankProcess& process : running_) ::kill(-process.pid, signal);
  }

  void wait_for_killed() {
    const Deadline deadline = Clock::now() + kUnkillable;
    for (const RankProcess& process : running_) {
      try {
        if (transport::wait_readable(process.ended, deadline)) take_end(process);
      } catch (const Error&) {
        continue;  // on the way out of a first error
      }
    }
  }

  const LaunchOptions& options_;
  AwaitedChildren children_;
  BlockedSignals signals_;  // before threads are made, which inherit it
  const std::string secret_ = transport::make_secret();
  transport::StoreServer store_{
      {.host = "127.0.0.1", .port = 0},
      options_.token_file.empty()
          ? transport::Token(secret_)
          : transport::Token(transport::read_token_file(options_.token_file))};
  Poller poller_;
  RankOutputs outputs_{[this](const std::exception_ptr& failure) {
    poller_.post([this, failure] { end_outputs(failure); });
  }};
  Orphans orphans_;
  std::vector<RankProcess> running_;
  bool have_outputs_ended_ = false;
  LaunchResult result_;
  int passed_on_ = 0;  ///< The first signal to end that ranks were sent; 0: none.
  int next_signal_ = 0;
  std::optional<Deadline> next_step_at_;
};

}  // namespace

LaunchResult launch(const LaunchOptions& options) {
  if (options.num_ranks < 1 || options.num_ranks > kMaxRanks) {
    throw Error(ErrorKind::kInvalidArgument, "a launch has 1 to " + std::to_string(kMaxRanks) +
                                                 " ranks on a host, not " +
                                                 std::to_string(options.num_ranks));
  }
  return Launcher(options).run();
}

}  // namespace trireme::launch
