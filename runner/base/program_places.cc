// SPDX-License-Identifier: Apache-2.0
#include "base/program_places.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "base/sys.h"

namespace {

bool IsBeneath(const std::string& path, const std::string& directory) {
  return directory == "/" || path == directory || path.starts_with(directory + "/");
}

// Returns the bytes in which the kernel looks for an interpreter.
std::string Head(const std::string& path) {
  constexpr size_t kHeadBytes = 256;  // BINPRM_BUF_SIZE.
  Result<Fd> file = sys::Open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  std::string head(kHeadBytes, '\0');
  ssize_t got = file.ok() ? ::read(file.value().get(), head.data(), head.size()) : 0;
  head.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
  return head;
}

}  // namespace

ProgramPlaces::ProgramPlaces(std::string_view search_path, const std::string& checkout)
    : mounts_(sys::ReadMounts()) {
  if (!checkout.empty()) {
    Result<std::string> real = sys::RealPath(checkout);
    checkout_ = real.ok() ? std::move(real).value() : checkout;
    checkout_location_ = Locate(checkout_);
  }
  std::istringstream parts{std::string(search_path)};
  for (std::string place; std::getline(parts, place, ':');) {
    if (!place.starts_with('/') || !sys::Exists(place)) continue;
    (InCheckout(place) ? left_out_ : places_).push_back(place);
  }
}

ProgramPlaces::Location ProgramPlaces::Locate(const std::string& real) const {
  const sys::Mount* mount = nullptr;
  for (const sys::Mount& one : mounts_) {
    bool holds = IsBeneath(real, one.point);
    if (holds && (mount == nullptr || one.point.size() >= mount->point.size())) mount = &one;
  }
  if (mount == nullptr) return {"", real};
  std::string rest = real.substr(mount->point == "/" ? 0 : mount->point.size());
  std::string root = mount->root == "/" ? "" : mount->root;
  return {mount->device, root + rest};
}

bool ProgramPlaces::InCheckout(const std::string& path) const {
  if (checkout_.empty()) return false;
  Result<std::string> real = sys::RealPath(path);
  if (!real.ok() || IsBeneath(real.value(), checkout_)) return true;
  Location location = Locate(real.value());
  return location.first == checkout_location_.first &&
         IsBeneath(location.second, checkout_location_.second);
}

bool ProgramPlaces::InterpreterInCheckout(const std::string& program) const {
  std::string head = Head(program);
  if (!head.starts_with("#!")) return false;
  std::istringstream words(head.substr(2, head.find('\n') - 2));
  std::string interpreter;
  words >> interpreter;
  if (InCheckout(interpreter)) return true;
  if (!interpreter.ends_with("/env")) return false;
  std::string name;
  while (words >> name && (name[0] == '-' || name.find('=') != std::string::npos)) {
  }
  for (const std::string& place : places_) {
    if (sys::Exists(place + "/" + name)) return InCheckout(place + "/" + name);
  }
  return false;
}

std::string ProgramPlaces::Find(const std::string& name) const {
  for (const std::string& place : places_) {
    std::string candidate = place + "/" + name;
    if (::access(candidate.c_str(), X_OK) != 0 || InCheckout(candidate)) continue;
    if (!InterpreterInCheckout(candidate)) return candidate;
  }
  return {};
}

std::string ProgramPlaces::search_path() const {
  std::string path;
  for (const std::string& place : places_) path += (path.empty() ? "" : ":") + place;
  return path;
}
