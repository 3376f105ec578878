"""What runs and ran on the nodes of a job: its binding, where its ranks stand, its timelines."""
