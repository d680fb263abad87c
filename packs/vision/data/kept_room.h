#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace trireme::vision {

/// Bytes of memory, or of a file from its begin on, and who has which. Thread-safe.
class KeptRoom {
 public:
  enum class Kind : std::uint8_t {
    kMemory,  ///< Parts lie anywhere.
    kFile,    ///< A part needs bytes that lie together: the first gap that is large enough.
  };

  /// Some of the bytes; they are free again at its end.
  class Part {
   public:
    Part(const Part&) = delete;
    Part& operator=(const Part&) = delete;
    ~Part();

    std::uint64_t offset() const { return offset_; }  ///< In the file.

   private:
    friend class KeptRoom;
    struct State;
    Part(std::shared_ptr<State> state, std::uint64_t offset, std::uint64_t bytes);

    std::shared_ptr<State> state_;  ///< Shared by parts and room, which may end in any order.
    std::uint64_t offset_, bytes_;
  };

  /// bytes   0 or more.
  KeptRoom(std::int64_t bytes, Kind kind);

  /// Null where there is no room. bytes: 1 or more.
  std::shared_ptr<const Part> take(std::int64_t bytes);

 private:
  std::shared_ptr<Part::State> state_;
};

}  // namespace trireme::vision
