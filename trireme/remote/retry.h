#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>

namespace trireme::remote {

/// How often is asked again what has failed for a reason that may pass. Changes no results.
struct RetryPolicy {
  std::chrono::milliseconds first_wait{200};  ///< Doubled each time..
  std::chrono::milliseconds longest_wait{
      10'000};  ///< ..up to this; each by a random part shorter, down to half.
  std::chrono::milliseconds stall{20'000};  ///< Without an answer, or a byte: the try has failed.
  std::chrono::milliseconds patience{60'000};  ///< Without progress: all has failed.
};

/// The tries of one request. Caller-synchronised.
class Retry {
 public:
  /// what   is asked for, for messages: `'s3://bucket/a.tar'`.
  Retry(const RetryPolicy& policy, std::string what, std::stop_token stop);

  /// Something new has come: waits are short again, and patience begins anew.
  void note_progress();

  /// Blocks until it is time for the next try.
  ///
  /// problem      why the last one has failed.
  /// asked_wait   what the server asks for; never less is waited.
  /// Errors       kTimeout, with the problem and the number of tries, where patience would be over by then; kCancelled.
  void wait(const std::string& problem, std::optional<std::chrono::seconds> asked_wait = {});

 private:
  std::chrono::milliseconds next_wait();

  RetryPolicy policy_;
  std::string what_;
  std::stop_token stop_;
  std::chrono::steady_clock::time_point progress_;  ///< When the last was.
  int num_tries_ = 0;                               ///< Since then, as both below.
  std::uint64_t seed_;  ///< Of the waits: another one for each thread and process.
};

}  // namespace trireme::remote
