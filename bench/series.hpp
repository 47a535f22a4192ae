// Named series of samples, printed as one JSON object. The driver makes medians and ratios of them; sample i of every
// series was taken in round i, so that a noisy moment hurts all of them alike.
#pragma once

#include <cstdio>
#include <map>
#include <string>
#include <vector>

namespace x0x::bench {

class Series {
 public:
  void add(const std::string& name, double sample) { samples_[name].push_back(sample); }

  void print() const {
    const char* comma = "{";
    for (const auto& [name, values] : samples_) {
      std::printf("%s\"%s\":", comma, name.c_str());
      for (std::size_t i = 0; i < values.size(); ++i) std::printf("%c%.9g", i == 0 ? '[' : ',', values[i]);
      std::printf("]");
      comma = ",\n";
    }
    std::printf("}\n");
  }

 private:
  std::map<std::string, std::vector<double>> samples_;
};

}  // namespace x0x::bench
