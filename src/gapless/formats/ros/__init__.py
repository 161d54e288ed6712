"""Recordings of messages: MCAP files, ROS 1 bags and ROS 2 bags; each topic's messages become columns."""
