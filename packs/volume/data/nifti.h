#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "packs/volume/kernels/shape.h"

namespace trireme::volume {

/// What a NIfTI file says of its volumes. Axes are named x, y, z as the file has them, x dense, so
/// that values lie in memory as they do in the file: [num_volumes, z, y, x].
struct NiftiHeader {
  VolumeShape shape;
  std::int64_t num_volumes = 1;  ///< Points in time, channels: all dimensions after the third.

  /// z, y, x: of voxels, in the file's unit (millimetres). Above 0; the file's sign is dropped.
  std::array<double, 3> spacing = {};

  /// Rows of (x, y, z in space) = affine (x, y, z as indices, 1); space points to right, anterior,
  /// superior. The sform where the file has one, else the qform, else the spacing alone.
  std::array<std::array<double, 4>, 3> affine = {};

  /// Where x, y and z grow to, e.g. "RAS"; the nearest direction, where axes are oblique.
  std::string orientation;

  std::string datatype;  ///< Of the file: "INT16".
  double slope = 1;      ///< value = slope * stored + intercept
  double intercept = 0;
};

template <typename T>
struct NiftiVolume {
  NiftiHeader header;
  std::vector<T> values;  ///< [num_volumes, z, y, x]
};

/// A NIfTI-1 or NIfTI-2 file, `.nii` or `.nii.gz` (told by content, not by name), either byte
/// order, integers of 8 to 64 bits, f32 or f64, from one to seven dimensions.
///
/// read_nifti         scaled in f64, then rounded to f32; NaN and infinity stay.
/// read_nifti_labels  integers; floating point and scaled values have to be whole.
/// Errors   kInvalidArgument, kIo as MappedFile; kCorruptData, naming the file and the field or the
///          voxel, where it is not NIfTI, is cut off, its checksum is wrong, its header contradicts
///          itself, has a spacing of 0 or promises more than the file can hold (found before memory
///          is taken), or a label is not whole or beyond 32 bits; kUnavailable where the type is
///          complex, a colour, a bit or f128, or header and values are two files (.hdr and .img).
/// Memory   the values, and for a packed file also its bytes unpacked.
NiftiVolume<float> read_nifti(const std::filesystem::path& path);
NiftiVolume<std::int32_t> read_nifti_labels(const std::filesystem::path& path);
NiftiHeader read_nifti_header(const std::filesystem::path& path);

/// The same of a file's bytes; errors call it `name`.
NiftiVolume<float> parse_nifti(std::span<const std::byte> file, const std::string& name);
NiftiVolume<std::int32_t> parse_nifti_labels(std::span<const std::byte> file,
                                             const std::string& name);
NiftiHeader parse_nifti_header(std::span<const std::byte> file, const std::string& name);

}  // namespace trireme::volume
