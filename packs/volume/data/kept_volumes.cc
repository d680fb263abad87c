#include "packs/volume/data/kept_volumes.h"

#include <utility>

namespace trireme::volume {

KeptVolumes::KeptVolumes(std::vector<VolumeFiles> files, const KeptVolumeOptions& options)
    : files_(std::move(files)),
      spacing_(options.spacing),
      room_(options.max_bytes),
      slots_(std::make_unique<Slot[]>(files_.size())) {}

std::shared_ptr<const LabelledVolume> KeptVolumes::get(std::int64_t index) const {
  Slot& slot = slots_[static_cast<std::size_t>(index)];
  const std::scoped_lock lock(slot.mutex);
  if (slot.volume) return slot.volume;
  const VolumeFiles& files = files_[static_cast<std::size_t>(index)];
  LabelledVolume own = read_volume(files);
  if (spacing_ && !is_same_spacing(own.spacing, *spacing_))
    own = resampled(own, *spacing_, files.name);
  auto volume = std::make_shared<const LabelledVolume>(std::move(own));
  if (take_room(volume->num_bytes())) slot.volume = volume;
  return volume;
}

bool KeptVolumes::take_room(std::int64_t bytes) const {
  std::int64_t room = room_;
  while (room >= bytes) {
    if (room_.compare_exchange_weak(room, room - bytes)) return true;
  }
  return false;
}

}  // namespace trireme::volume
