#pragma once

#include "trireme/command_line.h"

namespace trireme::recipes::resnet50 {

/// Residual networks for `--model resnet50`: classification of images from a folder or from tar shards; its
/// options are the README's.
///
/// Errors of `make`   those of vision::open_images, vision::ImageSource and make_classification;
///                    kInvalidArgument where no images are named.
Recipe make_recipe();

}  // namespace trireme::recipes::resnet50
