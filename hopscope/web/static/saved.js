// The entry of a saved page: first its data source, then the page.

import "./bundled.js";
import "./main.js";
