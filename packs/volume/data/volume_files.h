#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "packs/volume/data/nifti.h"
#include "packs/volume/kernels/resample.h"

namespace trireme::volume {

/// A case: a volume and its labels, in a file each.
struct VolumeFiles {
  std::string name;  ///< Of the files, or of their folder.
  std::filesystem::path image, labels;
};

/// Cases sorted by name. Files are `.nii` or `.nii.gz`.
///
///     images, labels   two folders: `images/NAME.nii.gz` goes with `labels/NAME.nii.gz`, and so does `images/NAME_0000.nii.gz`
///                      (nnU-Net)
///     images alone     a folder for each case: `NAME/imaging.nii.gz`, `NAME/segmentation.nii.gz` (KiTS)
///
/// Errors   kInvalidArgument where there is no case, or one without labels, which it names; kIo.
std::vector<VolumeFiles> find_volumes(const std::filesystem::path& images,
                                      const std::filesystem::path& labels = {});

/// A case in memory.
struct LabelledVolume {
  VolumeShape shape;
  Spacing spacing = {};  ///< Of the image's file.
  std::vector<float> values;
  std::vector<std::uint8_t> labels;

  std::int64_t num_bytes() const { return std::ssize(values) * 4 + std::ssize(labels); }
};

/// Errors   those of read_nifti; kCorruptData, naming the case, where shapes differ, a file has several volumes, or a label is
///          not from 0 to 255.
/// Parts    "read" and "decode" (data::ReadTimer).
LabelledVolume read_volume(const VolumeFiles& files);

/// A case at another spacing: values by resample_linear, labels by resample_nearest, in resampled_shape.
///
/// Errors   of resampled_shape, naming the case.
/// Parts    "resample".
LabelledVolume resampled(const LabelledVolume& volume, const Spacing& spacing,
                         const std::string& name);

}  // namespace trireme::volume
