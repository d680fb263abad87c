#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "trireme/base/device.h"
#include "trireme/base/log.h"
#include "trireme/error.h"
#include "trireme/wire.h"
#include "trireme/wire/collectives/group.h"
#include "trireme/wire/collectives/measure.h"
#include "trireme/wire/endpoint/elastic_world.h"
#include "trireme/wire/endpoint/watch.h"

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

/// Longer times are as good as none, and must not overflow.
inline constexpr std::int64_t kYearMs = std::int64_t{1000} * 3600 * 24 * 365;

inline std::chrono::milliseconds milliseconds_of(std::int64_t count) {
  return std::chrono::milliseconds(std::min(count, kYearMs));
}

/// What a world's handle, its groups and their works share: the last one frees it.
struct SharedWorld {
  SharedWorld(transport::Meeting meeting, transport::ElasticWorldOptions options)
      : deadline(options.deadline), ranks(std::move(meeting), std::move(options)) {
    measure();
  }

  /// For the groups of a generation; all ranks do it.
  void measure() { costs = collectives::measure_world_costs(ranks.endpoint(), deadline); }

  const std::chrono::milliseconds deadline;
  Logger logger{LogLevel::kOff};
  transport::ElasticWorld ranks;
  collectives::Costs costs;  ///< Of messages.
  bool has_left = false;
  std::mutex mutex;
  std::set<std::string> group_names;  ///< Of groups that are not freed; under the mutex.
};

/// A group under the name that it has taken in its world.
struct NamedGroup {
  /// stream   what the options say, where that is not null.
  NamedGroup(std::shared_ptr<SharedWorld> of, std::vector<int> ranks,
             collectives::GroupOptions options, std::unique_ptr<Stream> stream);
  ~NamedGroup();
  NamedGroup(const NamedGroup&) = delete;
  NamedGroup& operator=(const NamedGroup&) = delete;

  const std::shared_ptr<SharedWorld> world;  // shared with the world's handle and other groups
  const std::string name;
  const Device device;
  const std::unique_ptr<Stream> stream;  ///< Borrowed from the caller; may be null.
  std::optional<collectives::Group> group;
};

}  // namespace trireme::c

// The handles. A work's group stays until the work is freed: it may be asked who is missing.

struct TriremeStore {
  trireme::transport::StoreServer server;
};

struct TriremeWorld {
  std::shared_ptr<trireme::c::SharedWorld> world;  // shared with its groups
};

struct TriremeGroup {
  std::shared_ptr<trireme::c::NamedGroup> named;  // shared with its works
};

struct TriremeWork {
  std::shared_ptr<trireme::c::NamedGroup> named;  // shared with the group's handle
  trireme::transport::WorkPtr work;
  std::string operation;
  std::vector<int> peers = {};                ///< World ranks; of a message.
  trireme::transport::RecvWorkPtr recv = {};  ///< The work, where it is a recv's.
};
