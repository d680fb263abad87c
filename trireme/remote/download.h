#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "trireme/base/descriptor.h"
#include "trireme/remote/digests.h"
#include "trireme/remote/objects.h"

namespace trireme::remote {

/// An object on its way into a file, over as many answers as it takes. Caller-synchronised.
///
/// Errors   kIo where an answer is about another state of the object than the one that is expected, or is compressed by the server;
///          kIo and kResourceExhausted from writing.
class Download {
 public:
  /// All are lent for its life.
  Download(const std::filesystem::path& name, const ObjectLocation& location,
           const ObjectVersion& version, const Descriptor& file);

  /// Asks for what is missing, where the server can be told which state of the object is meant; else for all of it.
  HttpRequest next_request();

  void begin(const HttpResponse& head);

  /// Returns whether there is more than there was at any time before.
  bool take(std::span<const std::byte> bytes);

  bool is_whole() const { return at_ == version_.bytes; }

  /// Whether it is what the server has announced; true too where it has announced nothing.
  bool is_sound() const;

  void start_again() { at_ = 0; }

 private:
  [[noreturn]] void refuse(const std::string& problem) const;
  void check_version(const HttpResponse& head) const;

  const std::filesystem::path& name_;
  const ObjectLocation& location_;
  const ObjectVersion& version_;
  const Descriptor& file_;
  std::int64_t at_ = 0;    ///< So far.
  std::int64_t most_ = 0;  ///< That `at_` has been.
  std::optional<Digest> digest_;
};

}  // namespace trireme::remote
