#include "conf.h"
