// SPDX-License-Identifier: Apache-2.0
#include "image/progress.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace image {
namespace {

constexpr int64_t kTerminalMs = 100;
constexpr int64_t kLogMs = 10'000;
constexpr size_t kColumnsMax = 79;  // A line that wraps cannot be written over.

std::string Tenths(double value) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.1f", value);
  return text.data();
}

}  // namespace

std::string ShownBytes(int64_t bytes) {
  constexpr double kKib = 1024;
  const double value = static_cast<double>(bytes);
  if (value >= kKib * kKib * kKib) return Tenths(value / (kKib * kKib * kKib)) + " GiB";
  if (value >= kKib * kKib) return Tenths(value / (kKib * kKib)) + " MiB";
  if (value >= kKib) return Tenths(value / kKib) + " KiB";
  return std::to_string(bytes) + " bytes";
}

ProgressLines::ProgressLines(Options options)
    : options_(std::move(options)), began_ms_(options_.now_ms()), written_ms_(began_ms_) {}

void ProgressLines::Expect(const std::vector<Descriptor>& layers) {
  std::lock_guard lock(mutex_);
  for (const Descriptor& layer : layers) {
    layers_.try_emplace(layer.digest, BlobProgress{layer.digest, 0, layer.size});
  }
}

void ProgressLines::Update(const BlobProgress& progress) {
  std::lock_guard lock(mutex_);
  auto expected = layers_.find(progress.digest);
  if (expected == layers_.end()) return;
  expected->second = progress;
  const int64_t now = options_.now_ms();
  if (now - written_ms_ < (options_.terminal ? kTerminalMs : kLogMs)) return;
  written_ms_ = now;
  std::string line = Line(now);
  if (!options_.terminal) return options_.write(line + "\n");
  line.resize(std::min(line.size(), kColumnsMax));
  const size_t width = line.size();
  if (width < width_) line.append(width_ - width, ' ');
  width_ = width;
  options_.write("\r" + line);
}

std::string ProgressLines::Line(int64_t now_ms) const {
  int64_t bytes = 0;
  int64_t bytes_total = 0;
  size_t complete = 0;
  for (const auto& [digest, layer] : layers_) {
    bytes += layer.bytes;
    bytes_total += layer.bytes_total;
    complete += layer.bytes == layer.bytes_total ? 1 : 0;
  }
  const double seconds = static_cast<double>(now_ms - began_ms_) / 1000;
  std::string line = "agentic-ci: pulling " + options_.name + ": " + ShownBytes(bytes) + " of " +
                     ShownBytes(bytes_total) + ", " + std::to_string(complete) + " of " +
                     std::to_string(layers_.size()) + " layers, " + Tenths(seconds) + " s";
  if (seconds > 0) {
    const double rate = static_cast<double>(bytes) / seconds;
    line += ", " + ShownBytes(static_cast<int64_t>(rate)) + "/s";
  }
  return line;
}

void ProgressLines::Finish() {
  std::lock_guard lock(mutex_);
  int64_t bytes = 0;
  for (const auto& [digest, layer] : layers_) bytes += layer.bytes;
  if (bytes == 0) return;
  const double seconds = static_cast<double>(options_.now_ms() - began_ms_) / 1000;
  std::string line = "agentic-ci: pulled " + options_.name + ": " + ShownBytes(bytes) + " in " +
                     Tenths(seconds) + " s";
  if (options_.terminal && line.size() < width_) line.append(width_ - line.size(), ' ');
  options_.write((options_.terminal ? "\r" : "") + line + "\n");
  width_ = 0;
}

}  // namespace image
