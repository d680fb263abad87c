#pragma once

#include "trireme/command_line.h"

namespace trireme::recipes::ssd {

/// Single shot detectors for `--model ssd`: objects with boxes on images that a COCO file describes; its options
/// are the README's.
///
/// Errors of `make`   those of vision::open_boxed_images, vision::BoxedImageSource and make_detection;
///                    kInvalidArgument where images or annotations are not named.
Recipe make_recipe();

}  // namespace trireme::recipes::ssd
