#pragma once

#include <gtest/gtest.h>

#include <functional>

#include "trireme/error.h"

namespace trireme::test {

/// The error that `act` throws; a test failure where it throws none.
inline Error error_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return Error(ErrorKind::kIo, "none");
}

}  // namespace trireme::test
