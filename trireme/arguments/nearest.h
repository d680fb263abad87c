#pragma once

#include <string>
#include <vector>

namespace trireme::arguments {

/// The one of `names` that somebody who wrote `word` may have meant; empty where none is near.
std::string nearest(const std::string& word, const std::vector<std::string>& names);

/// `; did you mean 'train'?`, or nothing.
std::string did_you_mean(const std::string& word, const std::vector<std::string>& names);

}  // namespace trireme::arguments
