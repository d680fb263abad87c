#include "trireme/wire/transport/work.h"

#include <string>

namespace trireme::transport {

void wait(Work& work, std::chrono::milliseconds deadline, const ErrorContext& context) {
  bool has_ended = false;
  try {
    has_ended = work.wait_for(deadline);
  } catch (Error& error) {
    error.add(context);
    throw;
  }
  if (has_ended) return;
  Error late(ErrorKind::kTimeout,
             "not done after " + std::to_string(deadline.count()) + " ms; is the peer stuck?");
  late.add(context);
  throw late;
}

}  // namespace trireme::transport
