// Where a saved page begins: its own answers first, then the page.

import "./bundled.js";
import "./main.js";
