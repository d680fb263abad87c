#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace trireme::launch {

/// Text on its way to a descriptor whose reader may be slow. Never waits for it.
///
/// Caller-synchronised. Drops everything once the descriptor cannot be written to; `problem` says so.
class Outlet {
 public:
  explicit Outlet(int target) : target_(target) {}

  void add(std::string_view text);

  /// Writes what the reader takes at once, whole lines where they are short; whether it took any.
  bool write();

  /// Error number of the write after which all was dropped; 0 while there was none.
  int problem() const { return problem_; }

  bool is_empty() const { return waiting_.empty(); }

  /// Whether so much waits that no more should be added; from then on until half of it has gone.
  bool is_full();

  /// To be polled for writing; -1 where nothing waits.
  int to_poll() const { return is_empty() ? -1 : target_; }

 private:
  std::size_t next_piece(std::size_t begin) const;

  int target_;
  std::string waiting_;
  bool is_full_ = false;
  int problem_ = 0;
};

}  // namespace trireme::launch
