#pragma once

#include <string>

namespace trireme::backend {

/// A line of a Python program.
struct CallLine {
  std::string file;
  std::string function;
  int line = 0;  ///< 0: not known.
};

/// The line of this thread that has called the library, past those of torch itself; not known on a
/// thread that runs no Python, as those of autograd.
///
/// May not be called under a lock: it takes the interpreter's, for about a microsecond.
CallLine call_line();

/// While it is there, this thread does not hold the interpreter's lock.
class UnlockedInterpreter {
 public:
  UnlockedInterpreter();
  ~UnlockedInterpreter();
  UnlockedInterpreter(const UnlockedInterpreter&) = delete;
  UnlockedInterpreter& operator=(const UnlockedInterpreter&) = delete;

 private:
  void* state_;  ///< PyThreadState; null where it did not hold it.
};

/// `train.py:12, in step`; empty where it is not known.
std::string to_text(const CallLine& line);

}  // namespace trireme::backend
