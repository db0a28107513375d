"""Provider profiles: what a provider claims and which deviations are expected of it, as one JSON document."""
