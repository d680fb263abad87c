#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "packs/volume/data/volume_files.h"

namespace trireme::volume {

struct KeptVolumeOptions {
  std::optional<Spacing> spacing;  ///< That cases are brought to; none: as their files have it.
  std::int64_t max_bytes = 0;      ///< Of all that are kept.
};

/// Cases as they are asked for, kept in memory for later where there is room: the first ones that come, for good. Others are read
/// each time. Thread-safe: who asks for a case waits for another who reads it, and for nobody else.
class KeptVolumes {
 public:
  KeptVolumes(std::vector<VolumeFiles> files, const KeptVolumeOptions& options);

  /// Errors   of read_volume, and of resampled_shape, naming the case.
  std::shared_ptr<const LabelledVolume> get(std::int64_t index) const;

  const std::vector<VolumeFiles>& files() const { return files_; }

 private:
  struct Slot {
    std::mutex mutex;
    std::shared_ptr<const LabelledVolume> volume;  ///< Shared with those who use it.
  };

  bool take_room(std::int64_t bytes) const;

  std::vector<VolumeFiles> files_;
  std::optional<Spacing> spacing_;
  mutable std::atomic<std::int64_t> room_;
  std::unique_ptr<Slot[]> slots_;
};

}  // namespace trireme::volume
