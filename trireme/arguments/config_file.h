#pragma once

#include <CLI/CLI.hpp>
#include <istream>
#include <vector>

namespace trireme::arguments {

/// The file of `--config`: TOML, a section for each verb, each key an option, `_` as good as `-`. An
/// option of every verb may stand in the section of one.
///
/// Whatever is not understood is an error that names it, and what is near: a key that were left out
/// would train with another number than the one that somebody wrote.
class ConfigFile : public CLI::ConfigTOML {
 public:
  /// app   the program's, all options added; outlives this object.
  explicit ConfigFile(const CLI::App& app) : app_(app) {}

  /// Errors   CLI::ConfigError.
  std::vector<CLI::ConfigItem> from_config(std::istream& input) const override;

 private:
  const CLI::App& app_;
};

}  // namespace trireme::arguments
