#include "trireme/session/training_requests.h"

#include <signal.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <span>
#include <vector>

namespace trireme::session {
namespace {

constexpr std::array kRequestSignals = {SIGINT, SIGTERM, SIGUSR1};
constexpr time_t kSameRequestSeconds = 2;

/// What the handler has got. It knows only what is global, and needs what is free of locks.
struct ReceivedSignals {
  std::atomic<int> stop{0};
  std::atomic<time_t> stopped_at{0};
  std::atomic<bool> saves{false};
} received;

time_t monotonic_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec;
}

/// Calls only what a handler may.
void take_signal(int signal) {
  const int code = errno;
  if (signal == SIGUSR1) {
    received.saves = true;
  } else if (int none = 0; received.stop.compare_exchange_strong(none, signal)) {
    received.stopped_at = monotonic_seconds();
  } else if (monotonic_seconds() - received.stopped_at > kSameRequestSeconds) {
    ::signal(signal, SIG_DFL);
    ::raise(signal);  // comes once this handler has returned
  }
  errno = code;
}

}  // namespace

SignalRequests::SignalRequests() {
  received.stop = 0;
  received.saves = false;
  struct sigaction action{};
  action.sa_handler = take_signal;
  action.sa_flags = SA_RESTART;
  for (std::size_t i = 0; i < kRequestSignals.size(); ++i) {
    ::sigaction(kRequestSignals[i], nullptr, &before_[i]);
    if (before_[i].sa_handler != SIG_IGN) ::sigaction(kRequestSignals[i], &action, nullptr);
  }
}

SignalRequests::~SignalRequests() {
  for (std::size_t i = 0; i < kRequestSignals.size(); ++i) {
    ::sigaction(kRequestSignals[i], &before_[i], nullptr);
  }
}

TrainingRequest SignalRequests::take() {
  const int signal = received.stop;
  return {.stop_signal = signal, .stops = signal != 0, .saves = received.saves.exchange(false)};
}

RankRequests::RankRequests(const collectives::World& world, bool handles_signals) : world_(world) {
  if (handles_signals) signals_.emplace();
  if (world.size() > 1) group_ = collectives::make_world_group(world, "requests");
}

TrainingRequest RankRequests::agree(TrainingRequest asked) {
  TrainingRequest request = signals_ ? signals_->take() : TrainingRequest();
  request.stops = request.stops || asked.stops;
  request.saves = request.saves || asked.saves;
  request.has_news = asked.has_news;
  if (!group_) return request;
  const std::array mine = {request.stop_signal, static_cast<int>(request.stops),
                           static_cast<int>(request.saves), static_cast<int>(request.has_news)};
  std::vector<int> all(mine.size() * static_cast<std::size_t>(world_.size()));
  const auto work =
      group_->all_gather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)));
  transport::await(collectives::group_work(*work, *group_), world_.watch,
                   {.rank = world_.rank(), .operation = "agree on requests"});
  for (std::size_t i = 0; i < all.size(); i += mine.size()) {
    request.stop_signal = std::max(request.stop_signal, all[i]);
    request.stops = request.stops || all[i + 1] != 0;
    request.saves = request.saves || all[i + 2] != 0;
    request.has_news = request.has_news || all[i + 3] != 0;
  }
  return request;
}

std::string signal_text(int signal) {
  return "signal " + std::to_string(signal) + " (" + strsignal(signal) + ")";
}

}  // namespace trireme::session
