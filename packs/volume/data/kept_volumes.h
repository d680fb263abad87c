#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "packs/volume/data/volume_files.h"

namespace trireme::volume {

/// Cases as they are asked for, kept in memory for later where there is room: the first ones that come, for good. Others are read
/// each time. Thread-safe: who asks for a case waits for another who reads it, and for nobody else.
class KeptVolumes {
 public:
  /// max_bytes   of all that are kept.
  KeptVolumes(std::vector<VolumeFiles> files, std::int64_t max_bytes);

  /// Errors   of read_volume.
  std::shared_ptr<const LabelledVolume> get(std::int64_t index) const;

  const std::vector<VolumeFiles>& files() const { return files_; }

 private:
  struct Slot {
    std::mutex mutex;
    std::shared_ptr<const LabelledVolume> volume;  ///< Shared with those who use it.
  };

  bool take_room(std::int64_t bytes) const;

  std::vector<VolumeFiles> files_;
  mutable std::atomic<std::int64_t> room_;
  std::unique_ptr<Slot[]> slots_;
};

}  // namespace trireme::volume
