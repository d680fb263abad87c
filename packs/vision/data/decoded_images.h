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
#include "packs/vision/data/kept_room.h"
#include "trireme/base/scratch_file.h"
#include "trireme/data.h"

namespace trireme::vision {

/// Where decoded images are kept for later visits. Decides speed only.
struct KeepOptions {
  std::int64_t max_bytes = 0;  ///< Of a process: 3 bytes a pixel.
  std::filesystem::path
      folder;  ///< For a scratch file, whose space is free again at the end; none: in memory.
  /// Of samples that are repeated (data::repeat), how often each is used in an epoch: an image is dropped at the last of these
  /// visits, and another one takes its room. 0: none is.
  std::int64_t times = 0;
};

/// Images decoded once: the first that come are kept, whole, as long as there is room. None takes another's place: each
/// epoch meets all, so that as many would be lost. Those that are dropped after a few visits take at most the room of a block
/// of repeated samples, and the scratch file at most `max_bytes`.
///
/// Threads   any.
class DecodedImages {
 public:
  /// An image as it lies in a file.
  struct Encoded {
    std::function<std::vector<std::byte>()> read;
    std::function<std::string()> name;  ///< For errors.
  };

  /// Errors   kInvalidArgument for fewer than 0 bytes or times; those of ScratchFile.
  explicit DecodedImages(KeepOptions options);

  /// The part of an image that `choose` asks for, or more of it.
  ///
  /// sample   its index tells the image from others.
  /// Errors   those of `read`; of decode_image and `choose`, naming the image; kIo where a scratch file cannot be read.
  ///          One that cannot be written, as on a full disk, keeps no more.
  std::shared_ptr<const Pixels> get(data::Sample sample, const Encoded& image,
                                    const ChooseBox& choose);

  /// Images that need not be decoded again.
  std::int64_t num_kept() const;

 private:
  struct Kept {
    ImageSize size;
    std::shared_ptr<const Pixels> pixels;        ///< In memory.
    std::shared_ptr<const KeptRoom::Part> part;  ///< Is free once nobody reads it any more.
    std::int64_t epoch = 0;
  };

  std::shared_ptr<const Pixels> find(data::Sample sample, const ChooseBox& choose);
  std::shared_ptr<const Pixels> decode(data::Sample sample, std::span<const std::byte> bytes,
                                       const ChooseBox& choose);
  void keep(data::Sample sample, const std::shared_ptr<const Pixels>& pixels,
            std::shared_ptr<const KeptRoom::Part> part);
  void drop_older(std::int64_t epoch);
  std::int64_t epoch_of(data::Sample sample) const;
  bool is_last_visit(data::Sample sample) const;

  KeepOptions options_;
  KeptRoom room_;
  mutable std::mutex mutex_;  ///< Guards all that follows.
  std::int64_t epoch_ = 0;    ///< The latest that was met.
  bool is_full_ = false;      ///< The file could not be written.
  std::optional<ScratchFile>
      file_;  ///< Is read without the lock, which writing elsewhere does not disturb.
  std::unordered_map<std::int64_t, Kept> kept_;
};

}  // namespace trireme::vision
