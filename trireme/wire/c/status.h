#pragma once

#include <cstddef>
#include <exception>
#include <new>
#include <string>
#include <type_traits>

#include "trireme/base/error.h"
#include "trireme/wire.h"

namespace trireme::c {

/// Keeps the error for this thread's `trireme_last_error`; returns its status.
TriremeStatus keep(const Error& error) noexcept;

/// The same for what is no `Error`.
TriremeStatus keep_other(TriremeStatus status, const char* text) noexcept;

/// Runs the body of a C function: nothing that it throws leaves it. body returns a status or
/// nothing.
template <typename Body>
TriremeStatus guarded(Body&& body) noexcept {
  try {
    if constexpr (std::is_same_v<decltype(body()), void>) {
      body();
      return kTriremeOk;
    } else {
      return body();
    }
  } catch (const Error& error) {
    return keep(error);
  } catch (const std::bad_alloc&) {
    return keep_other(kTriremeResourceExhausted, "resource exhausted: no memory");
  } catch (const std::exception& error) {
    return keep_other(kTriremeIo, error.what());
  }
}

/// Throws kInvalidArgument.
[[noreturn]] void refuse(const std::string& problem);

/// Refuses options of another size than this library's.
void check_struct_bytes(std::size_t given, std::size_t own);

/// The pointer, which must not be null.
template <typename T>
T& needed(T* pointer, const char* name) {
  if (pointer == nullptr) refuse(std::string("'") + name + "' is null");
  return *pointer;
}

}  // namespace trireme::c
