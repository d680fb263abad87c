#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "packs/vision/data/decode.h"
#include "trireme/base/scratch_file.h"

namespace trireme::vision {

/// Where decoded images are kept for later visits. Decides speed only.
struct KeepOptions {
  std::int64_t max_bytes = 0;  ///< Of a process: 3 bytes a pixel.
  std::filesystem::path
      folder;  ///< For a scratch file, whose space is free again at the end; none: in memory.
};

/// Images decoded once: the first that come are kept, whole, as long as there is room. None takes another's place: each
/// epoch meets all, so that as many would be lost.
///
/// Threads   any.
class DecodedImages {
 public:
  /// An image as it lies in a file.
  struct Encoded {
    std::function<std::vector<std::byte>()> read;
    std::function<std::string()> name;  ///< For errors.
  };

  /// Errors   kInvalidArgument for fewer than 0 bytes; those of ScratchFile.
  explicit DecodedImages(KeepOptions options);

  /// The part of an image that `choose` asks for, or more of it.
  ///
  /// index    tells it from others.
  /// Errors   those of `read`; of decode_image and `choose`, naming the image; kIo where a scratch file cannot be read.
  ///          One that cannot be written, as on a full disk, keeps no more.
  std::shared_ptr<const Pixels> get(std::int64_t index, const Encoded& image,
                                    const ChooseBox& choose);

  /// Images that need not be decoded again.
  std::int64_t num_kept() const;

 private:
  struct Kept {
    ImageSize size;
    std::shared_ptr<const Pixels> pixels;  ///< In memory.
    std::uint64_t offset = 0;              ///< In the file.
  };

  std::shared_ptr<const Pixels> find(std::int64_t index, const ChooseBox& choose) const;
  std::shared_ptr<const Pixels> decode(std::int64_t index, std::span<const std::byte> bytes,
                                       const ChooseBox& choose);
  bool reserve(std::int64_t bytes);
  void keep(std::int64_t index, const std::shared_ptr<const Pixels>& pixels);

  KeepOptions options_;
  mutable std::mutex mutex_;  ///< Guards all that follows.
  std::int64_t free_bytes_;
  bool is_full_ = false;  ///< The file could not be written.
  std::optional<ScratchFile>
      file_;  ///< Is read without the lock, which appending does not disturb.
  std::unordered_map<std::int64_t, Kept> kept_;
};

}  // namespace trireme::vision
