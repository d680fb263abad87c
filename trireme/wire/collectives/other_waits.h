#pragma once

#include <span>
#include <string>
#include <string_view>

#include "trireme/wire/collectives/members.h"

namespace trireme::collectives {

/// For whom this rank waits in an operation, told to those: where they wait for this rank in another
/// group meanwhile, an error can say so. By notes, which need no receiver; the last one of a rank
/// counts, whatever group it is of.
///
/// Caller-synchronised.
class OtherWaits {
 public:
  /// An operation has waited for long. Tells each of the world ranks once.
  void tell(const Members& members, std::string_view operation, std::span<const int> awaited);

  /// It has ended well.
  void retract(const Members& members);

 private:
  std::vector<int> told_;
};

/// kTimeout as `late_error`, with what those ranks wait for in other groups.
Error late_error_with_waits(const Members& members, std::span<const int> awaited,
                            std::chrono::milliseconds deadline);

}  // namespace trireme::collectives
